"""What a cache holds and how it served."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from service.cache.directory import OpenCache
from service.cache.runtime import Runtime
from service.policy.sweep import AtThreshold, Nearest, sweep
from service.store import caches, calibrations, graph, requests
from service.store.database import Row

_EPOCH = datetime.fromtimestamp(0, UTC)
STEPS = 60  # of a window of traffic
VERDICTS = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Traffic:
    """How a cache served in the window that ends at `until`: rows of `sql/queries/request_traffic.sql`."""

    since: datetime
    until: datetime
    step: timedelta
    tiers: list[Row]
    miss_reasons: dict[str, int]


@dataclass(frozen=True, slots=True)
class Similarities:
    """How near the neighbours of a window's requests were, and what other thresholds would have made of them."""

    since: datetime
    until: datetime
    judged_since: datetime
    nearest: Nearest
    sweep: list[AtThreshold]


async def read_stats(
    runtime: Runtime, cache: OpenCache, since: datetime | None
) -> tuple[dict[str, Any], dict[str, int]]:
    """Figures as `sql/queries/cache_stats.sql` names them, and how often each reason kept an answer back."""
    await runtime.recorder.flush()
    figures, reasons = await caches.stats(runtime.db, cache.row, since)
    return figures, _by_reason(reasons)


async def read_traffic(runtime: Runtime, cache: OpenCache, window: timedelta) -> Traffic:
    """The last `window` and the rest of the step that it begins in: steps begin at multiples of their length."""
    await runtime.recorder.flush()
    until, step = datetime.now(UTC), window / STEPS
    since = until - window - (until - _EPOCH) % step
    tiers, reasons = await requests.traffic(runtime.db, cache.row, since=since, step=step)
    return Traffic(since, until, step, tiers, _by_reason(reasons))


async def read_similarities(runtime: Runtime, cache: OpenCache, window: timedelta) -> Similarities:
    """What is known of the last `window`, with the verdicts of the last 30 days, since there are few."""
    await runtime.recorder.flush()
    until = datetime.now(UTC)
    since, judged_since = until - window, until - VERDICTS
    found = await requests.nearest(runtime.db, cache.row, since=since, judged_since=judged_since)
    return Similarities(since, until, judged_since, found, sweep(found))


async def read_calibrations(runtime: Runtime, cache: OpenCache) -> list[dict[str, Any]]:
    """What the cache has learned, as `sql/queries/calibration_stats.sql` names it."""
    return await calibrations.stats(runtime.db, cache.row)


async def read_logged(runtime: Runtime, cache: OpenCache, request_id: str) -> list[Row]:
    """What requests with this id got, the newest first: rows of `sql/queries/logged_requests.sql`."""
    await runtime.recorder.flush()
    return await requests.logged(runtime.db, cache.row, request_id)


async def read_graph(runtime: Runtime, cache: OpenCache, measure: str, limit: int) -> tuple[list[Row], list[Row]]:
    """The most central nodes of the request graph and the edges between them, as the worker last computed them."""
    return await graph.central(runtime.db, cache.row, measure=measure, limit=limit)


def _by_reason(rows: list[Row]) -> dict[str, int]:
    return {row["reason"]: row["requests"] for row in rows}


__all__ = [
    "Similarities",
    "Traffic",
    "read_calibrations",
    "read_graph",
    "read_logged",
    "read_similarities",
    "read_stats",
    "read_traffic",
]
