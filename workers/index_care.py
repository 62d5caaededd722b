"""Gives large scopes their approximate index, tries what the indexes find, and clears what is in the way."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import uuid4

from service.policy.decision import FLOOR
from service.settings import Settings
from service.store.database import Database
from service.store.index_care import (
    build,
    clear_invalid,
    drop_needless,
    figures,
    indexes_to_try,
    large_scopes,
    request_rate,
    try_recall,
    vacuum_needy,
)

SAMPLE = 20
URGENT = 4  # times the limit of exact scans: from there on a scan costs more than building beside the load


@dataclass(frozen=True, slots=True)
class Cared:
    """Names of what was built, dropped, vacuumed; how many scopes wait for an index; and `Figures`."""

    built: list[str]
    dropped: list[str]
    vacuumed: list[str]
    waiting: int
    lowest_recall: float | None
    builds: int
    dead_rows: dict[str, int]


async def run_once(db: Database, settings: Settings) -> Cared:
    """Try the indexes that are due, and build what is missing or worn, one after the other."""
    limit = settings.exact_scan_limit
    dropped = await clear_invalid(db) + await drop_needless(db, limit)
    for index in await indexes_to_try(db, settings.recall_interval):
        await try_recall(db, index, after=uuid4(), sample=SAMPLE, floor=FLOOR)
    wanted = await large_scopes(db, limit, recall_floor=settings.recall_floor)
    built = []
    for scope in wanted:
        urgent = not scope.indexed and scope.rows > URGENT * limit
        if (urgent or await request_rate(db) <= settings.index_max_rate) and await build(db, scope):
            built.append(scope.name)
    vacuumed = await vacuum_needy(db)
    return Cared(built, dropped, vacuumed, len(wanted) - len(built), **asdict(await figures(db)))


__all__ = ["Cared", "run_once"]
