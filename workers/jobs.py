"""Does what was asked for as jobs, a batch of each in turn."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from uuid import uuid4

from service.cache.jobs import LEASE_SECONDS, work
from service.cache.runtime import build_runtime
from service.settings import Settings
from service.store.database import Database, Limits
from service.store.jobs import claim

RUN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Worked:
    """How many batches were done."""

    batches: int


async def run_once(db: Database, settings: Settings) -> Worked:
    """Do batches until no job is open, or for a minute.

    Raises: SemcacheError where a batch could not be done now; it is tried again.
    """
    until, batches, holder = time.monotonic() + RUN_SECONDS, 0, uuid4()
    claimed = await claim(db, holder, LEASE_SECONDS)
    if claimed is None:
        return Worked(0)
    door = Database(db.url, Limits(pool_min=1, pool_max=4, bulk_timeout=settings.bulk_timeout), role="semcache_worker")
    runtime = build_runtime(settings, door)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runtime.stop)
        await runtime.start()
        while claimed is not None:
            await work(runtime, claimed, holder)
            batches += 1
            claimed = await claim(db, holder, LEASE_SECONDS) if time.monotonic() < until else None
    return Worked(batches)


__all__ = ["Worked", "run_once"]
