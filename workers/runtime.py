"""The worker: periodic tasks, each done by whichever worker holds its lease."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

from service.errors import SemcacheError
from service.settings import Settings
from service.store.database import Database, Limits
from service.store.leases import acquire_task
from workers import index_care, purge

LEASE_SECONDS = 300.0

logger = logging.getLogger("semcache.worker")


@dataclass(frozen=True, slots=True)
class Task:
    """What is done every so often. interval: seconds."""

    name: str
    interval: float
    run_once: Callable[[Database], Awaitable[object]]


def tasks(settings: Settings) -> list[Task]:
    """All tasks of a worker."""
    return [
        Task("purge", settings.purge_interval, purge.run_once),
        Task(
            "index_care",
            settings.index_interval,
            lambda db: index_care.run_once(db, settings.exact_scan_limit),
        ),
    ]


async def run(url: str, settings: Settings, stop: asyncio.Event) -> None:
    """Run all tasks until `stop` is set; a task in progress is ended by the database's own rules.

    Raises: SemcacheError(DATABASE_UNAVAILABLE) where the database cannot be used at the start.
    """
    db = Database(url, Limits(pool_min=1, pool_max=4, bulk_timeout=3600.0), role="semcache_worker")
    await db.verify()
    await db.open()
    loops = [asyncio.create_task(_repeat(db, task), name=f"semcache {task.name}") for task in tasks(settings)]
    await stop.wait()
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
    await db.close()


async def _repeat(db: Database, task: Task) -> None:
    holder = uuid4()
    while True:
        try:
            if await acquire_task(db, task.name, holder, LEASE_SECONDS):
                result = await task.run_once(db)
                logger.info("%s: %s", task.name, result)
        except SemcacheError as error:
            logger.warning("%s failed and is tried again: %s", task.name, error)
        await asyncio.sleep(task.interval * random.uniform(0.8, 1.2))  # noqa: S311 - jitter, no secret


__all__ = ["Task", "run", "tasks"]
