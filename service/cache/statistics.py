"""What a cache holds and how it served."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any

from service.cache.directory import OpenCache
from service.cache.runtime import Runtime
from service.errors import SemcacheError
from service.store import caches, calibrations, tasks
from service.store.tasks import TaskRow
from service.telemetry.metrics import Metrics


async def read_calibrations(runtime: Runtime, cache: OpenCache) -> list[dict[str, Any]]:
    """What the cache has learned, as `sql/queries/calibration_stats.sql` names it."""
    return await calibrations.stats(runtime.db, cache.row)


async def read_stats(
    runtime: Runtime, cache: OpenCache, since: datetime | None
) -> tuple[dict[str, Any], dict[str, int]]:
    """Figures as `sql/queries/cache_stats.sql` names them, and how often each reason kept an answer back."""
    await runtime.recorder.flush()
    figures, reasons = await caches.stats(runtime.db, cache.row, since)
    return figures, {row["reason"]: row["requests"] for row in reasons}


async def count_stored(runtime: Runtime) -> None:
    """Set the gauges whose values stand in the database; while it is away they are as they were."""
    with contextlib.suppress(SemcacheError):
        for task in await tasks.states(runtime.db):
            _count_task(runtime.metrics, task)


def _count_task(metrics: Metrics, task: TaskRow) -> None:
    metrics.task_failures.labels(task.name).set(task.failures)
    if task.ended is not None and task.seconds is not None:
        metrics.task_ended.labels(task.name).set(task.ended)
        metrics.task_seconds.labels(task.name).set(task.seconds)


__all__ = ["count_stored", "read_stats"]
