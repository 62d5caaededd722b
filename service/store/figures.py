"""What all caches together hold and how right they serve: read by a worker, shown by every replica."""

from __future__ import annotations

from dataclasses import dataclass

from service.store.database import Database


@dataclass(frozen=True, slots=True)
class Figures:
    """As `sql/functions/read_figures.sql` says. None: there is nothing to say it of.

    table_bytes: with indexes; labelled: how many verdicts a rate rests on; wrong: the rate, 0 to 1.
    """

    entries: int
    table_bytes: dict[str, int]
    hit_entries: int
    mean_hits: float | None
    deviation_hits: float | None
    semantic_labelled: float | None
    semantic_wrong: float | None
    served_labelled: float | None
    served_wrong: float | None


async def read(db: Database) -> Figures:
    async with db.connection(bulk=True) as connection:
        return Figures(**await connection.one("select * from semcache.read_figures()"))


__all__ = ["Figures", "read"]
