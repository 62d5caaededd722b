"""Leases and invalidations: how replicas agree on what may be served from memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from uuid import UUID

from service.store.database import Database
from service.store.queries import query
from service.store.rows import InvalidationId


@dataclass(frozen=True, slots=True)
class Invalidation:
    """What to forget: a request of a cache, a whole cache (exact_key None), or everything (cache_id None)."""

    invalidation_id: InvalidationId
    cache_id: int | None
    exact_key: bytes | None


@dataclass(frozen=True, slots=True)
class Renewal:
    """head: the newest invalidation. alone: no other replica had a lease then."""

    head: InvalidationId
    alone: bool


async def renew(db: Database, holder: UUID, seconds: float, confirmed: InvalidationId | None) -> Renewal:
    """Take or renew a replica's lease. confirmed None: a new replica, whose memory is empty."""
    async with db.connection() as connection:
        row = await connection.one(
            query("renew_replica"),
            {"name": f"replica:{holder}", "holder": holder, "seconds": seconds, "confirmed": confirmed},
            prepare=True,
        )
    return Renewal(**row)


async def pending(db: Database, confirmed: InvalidationId, head: InvalidationId) -> list[Invalidation]:
    """What came after `confirmed`, up to `head`. A replica that is too far behind is told to forget everything."""
    async with db.connection() as connection:
        cursor = await connection.execute(
            query("pending_invalidations"), {"confirmed": confirmed, "head": head}, prepare=True
        )
        rows = await cursor.fetchall()
    if not rows or rows[0]["invalidation_id"] != confirmed + 1:
        return [Invalidation(head, None, None)]
    return [Invalidation(**row) for row in rows]


async def lagging(db: Database, holder: UUID, invalidation_id: InvalidationId) -> float | None:
    """Seconds until the last replica that has not followed must stop trusting its memory; None when all have."""
    async with db.connection() as connection:
        row = await connection.one(
            query("lagging_replicas"), {"holder": holder, "invalidation_id": invalidation_id}, prepare=True
        )
    return cast("float | None", row["seconds"])


async def end(db: Database, holder: UUID) -> None:
    """Give the lease back, so that nobody waits for this replica."""
    async with db.connection() as connection:
        await connection.execute("delete from semcache.lease where name = %s", (f"replica:{holder}",))


__all__ = ["Invalidation", "Renewal", "end", "lagging", "pending", "renew"]
