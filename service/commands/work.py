"""Work that a command does on a current schema, and that every replica has followed when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.cache.coherence import Coherence
from service.commands.target import open_target
from service.memory.replica import ReplicaMemory
from service.settings import Settings
from service.store import migrate
from service.store.database import Database, Limits
from service.store.rows import InvalidationId

T = TypeVar("T")


def run(
    settings: Settings,
    work: Callable[[Database], Awaitable[T]],
    invalidation: Callable[[T], InvalidationId | None],
    *,
    role: str = "semcache_app",
) -> T:
    """Do the work in this role, and wait until every replica has followed what it invalidated."""

    async def job(url: str) -> T:
        db = Database(url, Limits(pool_min=1, pool_max=2), role=role)
        await db.open()
        try:
            result = await work(db)
            if (to_follow := invalidation(result)) is not None:
                await Coherence(db, ReplicaMemory(0, 0), settings.lease_duration).wait_for_replicas(to_follow)
            return result
        finally:
            await db.close()

    with open_target(settings) as target:
        if target.embedded:
            migrate.upgrade(target.url)
        migrate.require_current(target.url)
        return asyncio.run(job(target.url))


__all__ = ["run"]
