"""Learns from the request log how fast the uses of each limited cache's entries should fade."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from service.store.database import Database
from service.store.eviction import decaying, recent_requests, set_half_life
from workers.forward_decay import best_half_life

LOG_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Learned:
    """How many caches were looked at, and how many got another half-life."""

    caches: int
    changed: int


async def run_once(db: Database) -> Learned:
    caches = await decaying(db)
    changed = 0
    for cache in caches:
        requests = await recent_requests(db, cache.cache_id, LOG_ROWS)
        best = await asyncio.to_thread(best_half_life, requests, max(1, int(cache.room)), cache.half_life)
        if best != cache.half_life:
            await set_half_life(db, cache.cache_id, best)
            changed += 1
    return Learned(len(caches), changed)


__all__ = ["Learned", "run_once"]
