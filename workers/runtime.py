"""The worker: periodic tasks, each done by whichever worker holds its lease."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, is_dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from service.ending import end
from service.errors import SemcacheError
from service.settings import Settings
from service.store import tasks as store
from service.store.database import Database, Limits
from workers import (
    calibrate,
    drift,
    eviction,
    figures,
    half_life,
    index_care,
    jobs,
    lifetimes,
    prefetch,
    purge,
    request_graph,
)

LEASE_SECONDS = 15.0
RENEWALS = 3

logger = logging.getLogger("semcache.worker")


@dataclass(frozen=True, slots=True)
class Task:
    """What is done every so often. interval, and longest, which bounds one run: seconds.

    A run is cancelled at any point of it, so it goes in steps that are each whole. Its result, a dataclass, is noted.
    """

    name: str
    interval: float
    run_once: Callable[[Database], Awaitable[object]]
    longest: float = 3600.0


class LeaseLostError(Exception):
    """Another worker may be doing the task by now."""


def tasks(settings: Settings) -> list[Task]:
    """All tasks of a worker."""
    return [
        Task("figures", settings.figures_interval, figures.run_once),
        Task(
            "purge",
            settings.purge_interval,
            lambda db: purge.run_once(db, timedelta(days=settings.log_days)),
        ),
        Task(
            "eviction",
            settings.eviction_interval,
            lambda db: eviction.run_once(db, settings.eviction_low),
        ),
        Task("half_life", settings.half_life_interval, half_life.run_once),
        Task("index_care", settings.index_interval, lambda db: index_care.run_once(db, settings)),
        Task(
            "lifetimes",
            settings.lifetime_interval,
            lambda db: lifetimes.run_once(db, settings.lifetime_interval),
        ),
        Task("jobs", settings.jobs_interval, lambda db: jobs.run_once(db, settings)),
        Task(
            "request_graph",
            settings.graph_interval,
            lambda db: request_graph.run_once(db, nodes=settings.graph_nodes, edges=settings.graph_edges),
        ),
        Task(
            "calibrate",
            settings.calibrate_interval,
            lambda db: calibrate.run_once(
                db, timedelta(days=settings.calibrate_window_days), settings.calibrate_observations
            ),
        ),
        Task("prefetch", settings.prefetch_interval, lambda db: prefetch.run_once(db, settings)),
        Task(
            "drift",
            settings.drift_interval,
            lambda db: drift.run_once(
                db, timedelta(days=settings.calibrate_window_days), settings.calibrate_observations
            ),
        ),
    ]


async def run(url: str, settings: Settings, stop: asyncio.Event) -> None:
    """Run all tasks until `stop` is set; tasks in progress are cancelled, and noted as stopped.

    Raises: SemcacheError(DATABASE_UNAVAILABLE) where the database cannot be used at the start.
    """
    every = tasks(settings)
    limits = Limits(
        pool_min=1,
        pool_max=2 * len(every),
        bulk_timeout=3600.0,
        probes=settings.ivfflat_probes,
        ef_search=settings.hnsw_ef_search,
    )
    db = Database(url, limits, role="semcache_worker")
    await db.verify()
    await db.open()
    holder = uuid4()
    loops = [asyncio.create_task(_repeat(db, task, holder), name=f"semcache {task.name}") for task in every]
    await stop.wait()
    await end(loops)
    await db.close()


async def _repeat(db: Database, task: Task, holder: UUID) -> None:
    while True:
        try:
            wait = await store.claim(db, task.name, holder, LEASE_SECONDS)
            if wait is None:
                wait = await run_claimed(db, task, holder)
        except SemcacheError as error:
            wait = task.interval
            logger.warning("%s: the database does not say whose turn it is: %s", task.name, error)
        await asyncio.sleep(min(wait, task.interval))


async def run_claimed(db: Database, task: Task, holder: UUID) -> float:
    """Do a task that was claimed and note how it ended; returns in how many seconds the next run is due."""
    outcome: store.Outcome = "failed"
    try:
        detail = _detail(await _under_lease(db, task, holder))
        outcome = "done"
    except asyncio.CancelledError:
        await store.end(db, task.name, holder, outcome="stopped", detail={}, interval=task.interval)
        raise
    except (SemcacheError, LeaseLostError, TimeoutError) as error:
        detail = {"error": str(error)}
        logger.warning("%s failed and is tried again: %s", task.name, error)
    except Exception as error:
        detail = {"error": type(error).__name__}
        logger.exception("%s failed and is tried again", task.name)
    return await store.end(db, task.name, holder, outcome=outcome, detail=detail, interval=task.interval)


async def _under_lease(db: Database, task: Task, holder: UUID) -> object:
    """The run's result. It is cancelled when the lease is lost, when it takes too long, and when we are."""
    work = asyncio.ensure_future(task.run_once(db))
    begun = renewed = time.monotonic()
    try:
        while not work.done():
            await asyncio.wait({work}, timeout=LEASE_SECONDS / RENEWALS)
            now = time.monotonic()
            if work.done():
                break
            if now - begun > task.longest:
                raise TimeoutError(f"it took longer than {task.longest:g} s")
            if await _renew(db, task, holder):
                renewed = now
            elif now - renewed > LEASE_SECONDS:
                raise LeaseLostError("its lease could not be renewed in time")
        return work.result()
    finally:
        await end([work])


async def _renew(db: Database, task: Task, holder: UUID) -> bool:
    """False where the database does not answer."""
    try:
        renewed = await store.renew(db, task.name, holder, LEASE_SECONDS)
    except SemcacheError:
        return False
    if not renewed:
        raise LeaseLostError("another worker has taken it")
    return True


def _detail(result: object) -> dict[str, Any]:
    return asdict(result) if is_dataclass(result) and not isinstance(result, type) else {}


__all__ = ["Task", "run", "tasks"]
