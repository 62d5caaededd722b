"""What a cache holds and how it served."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from service.cache.directory import OpenCache
from service.cache.runtime import Runtime
from service.store import caches, calibrations


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


__all__ = ["read_calibrations", "read_stats"]
