"""What a cache holds and how it served."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from service.cache.directory import OpenCache
from service.cache.runtime import Runtime
from service.store import caches


async def read_stats(
    runtime: Runtime, cache: OpenCache, since: datetime | None
) -> tuple[dict[str, Any], dict[str, int]]:
    """Figures as `sql/queries/cache_stats.sql` names them, and how often each reason kept an answer back."""
    await runtime.recorder.flush()
    figures, reasons = await caches.stats(runtime.db, cache.row, since)
    return figures, {row["reason"]: row["requests"] for row in reasons}


__all__ = ["read_stats"]
