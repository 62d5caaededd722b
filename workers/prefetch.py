"""Asks for answers that are likely to be wanted and would not be there, while the model servers have room."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta

from service.cache.ahead import ask_ahead, has_room
from service.cache.runtime import Runtime, build_runtime
from service.settings import Settings
from service.store import prefetch as store
from service.store.database import Database, Limits
from service.store.prefetch import Claim, Terms, Totals

PATIENCE = 10.0  # seconds for the first look at a model: no user waits


@dataclass(frozen=True, slots=True)
class Prefetched:
    """How often each outcome came, why the run ended (nothing_kept, no_room, no_candidate, busy or time), and what came
    of all in the last month."""

    ended: str
    outcomes: dict[str, int]
    month: Totals


async def run_once(db: Database, settings: Settings) -> Prefetched:
    """Ask for one answer after the other, the most valuable first, until a bound is reached.

    A run that is killed leaves at most one request noted as asked, which counts against the budget and rests.
    """
    outcomes: Counter[str] = Counter()
    models = await store.models(db)
    ended = await _ask_on(db, settings, models, outcomes) if models else "nothing_kept"
    return Prefetched(ended, dict(outcomes), await store.totals(db))


async def _ask_on(db: Database, settings: Settings, models: list[str], outcomes: Counter[str]) -> str:
    door = Database(db.url, Limits(pool_min=1, pool_max=4, timeout=settings.database_timeout))
    await door.verify()
    runtime = build_runtime(settings.model_copy(update={"probe_patience": PATIENCE}), door)
    until = time.monotonic() + settings.prefetch_interval
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runtime.stop)
        while time.monotonic() < until:
            room = await _with_room(runtime, models)
            if not room:
                return "no_room"
            claim = await store.claim(db, room, _terms(settings))
            if claim is None:
                return "no_candidate"
            if not outcomes:
                await runtime.start()
            outcome = await _ask(runtime, db, claim)
            outcomes[outcome] += 1
            if outcome == "busy":
                return "busy"
    return "time"


async def _ask(runtime: Runtime, db: Database, claim: Claim) -> str:
    came = await ask_ahead(runtime, claim, renew=claim.why != "new_model")
    await store.end(
        db, claim.prefetch_id, outcome=came.outcome, entry_id=came.entry_id, tokens=came.tokens, cost_ms=came.cost_ms
    )
    return came.outcome


async def _with_room(runtime: Runtime, models: list[str]) -> dict[str, bytes]:
    """The models whose servers are seen and have room now, with the key of their revision."""
    room = {}
    for name in models:
        if await has_room(runtime, name) and (identity := await runtime.models.identity(name)):
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
