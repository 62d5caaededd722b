"""Who of the replicas asks the model for an answer: rows of `lease`, held for as long as the call lasts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from service.store.database import Database
from service.store.queries import query
from service.store.rows import CacheRow


@dataclass(frozen=True, slots=True)
class Place:
    """`landed`: another replica has stored the answer; `leads`: this one asks; else another asks.

    seconds: how long its lease lasts, None where that is not to be seen yet.
    """

    landed: bool
    leads: bool
    seconds: float | None


async def acquire(
    db: Database, cache: CacheRow, *, name: str, holder: UUID, seconds: float, exact_key: bytes, since: float
) -> Place:
    """Try to take the lead for `seconds`. since: an entry of this request that is younger, in seconds, has landed."""
    async with db.tenant(cache.tenant_id) as connection:
        row = await connection.one(
            query("acquire_flight"),
            {
                "tenant_id": cache.tenant_id,
                "cache_id": cache.cache_id,
                "exact_key": exact_key,
                "since": since,
                "name": name,
                "holder": holder,
                "seconds": seconds,
            },
            prepare=True,
        )
    return Place(**row)


async def renew(db: Database, names: Collection[str], holder: UUID, seconds: float) -> None:
    async with db.connection() as connection:
        await connection.execute(
            query("renew_flights"), {"names": list(names), "holder": holder, "seconds": seconds}, prepare=True
        )


async def end(db: Database, name: str, holder: UUID) -> None:
    async with db.connection() as connection:
        await connection.execute(query("end_flight"), {"name": name, "holder": holder}, prepare=True)


__all__ = ["Place", "acquire", "end", "renew"]
