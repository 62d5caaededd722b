"""Asks for answers that are likely to be wanted and would not be there, while the model servers have room."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta

from service.cache.ahead import ask_ahead
from service.cache.runtime import Runtime, build_runtime
from service.settings import Settings
from service.store import prefetch as store
from service.store.database import Database, Limits
from service.store.prefetch import Terms
from service.upstream.client import UpstreamError
from service.upstream.load import read_load


@dataclass(frozen=True, slots=True)
class Prefetched:
    """How often each outcome came, and why the run ended: nothing_kept, no_room, no_candidate, busy or time."""

    outcomes: dict[str, int] = field(default_factory=dict)
    ended: str = "nothing_kept"


async def run_once(db: Database, settings: Settings) -> Prefetched:
    """Ask for one answer after the other, the most valuable first, until a bound is reached.

    A run that is killed leaves at most one request noted as asked, which counts against the budget and rests.
    """
    models = await store.models(db)
    if not models:
        return Prefetched()
    door = Database(db.url, Limits(pool_min=1, pool_max=4, timeout=settings.database_timeout))
    await door.verify()
    runtime = build_runtime(settings, door)
    until = time.monotonic() + settings.prefetch_interval
    outcomes: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runtime.stop)
        while time.monotonic() < until:
            room = await _with_room(runtime, models)
            if not room:
                return Prefetched(outcomes, "no_room")
            claim = await store.claim(db, room, _terms(settings))
            if claim is None:
                return Prefetched(outcomes, "no_candidate")
            if not outcomes:
                await runtime.start()
            came = await ask_ahead(runtime, claim)
            await store.end(
                db,
                claim.prefetch_id,
                outcome=came.outcome,
                entry_id=came.entry_id,
                tokens=came.tokens,
                cost_ms=came.cost_ms,
            )
            outcomes[came.outcome] += 1
            if came.outcome == "busy":
                return Prefetched(outcomes, "busy")
    return Prefetched(outcomes, "time")


async def _with_room(runtime: Runtime, models: list[str]) -> dict[str, bytes]:
    """The models whose servers are seen and have room now, with the key of their revision."""
    settings, room = runtime.settings, {}
    for name in models:
        identity = await runtime.models.identity(name)
        if identity is None:
            continue
        try:
            load = await read_load(runtime.upstream, name)
        except UpstreamError:
            continue
        if load.has_room(waiting=settings.prefetch_max_waiting, kv_usage=settings.prefetch_max_kv_usage):
            room[name] = identity.key
    return room


def _terms(settings: Settings) -> Terms:
    return Terms(
        measure=settings.prefetch_measure,
        horizon=timedelta(seconds=settings.prefetch_horizon),
        soon=timedelta(seconds=2 * settings.prefetch_interval),
        gain=settings.prefetch_gain,
        budget=settings.prefetch_tokens,
        tenant_budget=settings.prefetch_tenant_tokens,
    )


__all__ = ["Prefetched", "run_once"]
