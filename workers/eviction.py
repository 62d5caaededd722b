"""Evicts from caches that are over their limits, a batch at a time, so that no request waits."""

from __future__ import annotations

from dataclasses import dataclass

from service.store.database import Database
from service.store.eviction import evict, evicted, overfull

BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Evicted:
    """How many caches were over a limit, in how many batches they were evicted from, and all entries that ever were."""

    caches: int
    batches: int
    evicted: int


async def run_once(db: Database, low: float) -> Evicted:
    """Bring every cache that is over a limit down to the share `low` of it."""
    caches = await overfull(db)
    batches = 0
    for cache_id in caches:
        while await evict(db, cache_id, limit=BATCH, low=low):
            batches += 1
    return Evicted(len(caches), batches, await evicted(db))


__all__ = ["Evicted", "run_once"]
