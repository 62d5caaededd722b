"""Asking the model ahead of a user, through the same steps as for one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from service.cache.asked import Asked
from service.cache.call import Call, parse_body
from service.cache.directory import OpenCache, open_cache
from service.cache.exchange import open_exchange
from service.cache.keep import keep, whole_answer
from service.cache.lookup import Looked, look_up_stale
from service.cache.plan import Plan, make_plan
from service.cache.runtime import Runtime
from service.errors import SemcacheError
from service.json_text import edit_object
from service.policy.cache_policy import LONGEST_STALE_MS
from service.policy.controls import Controls
from service.store import prefetch
from service.store.prefetch import Repeat
from service.store.tenants import Tenant
from service.upstream.answer import PATHS
from service.upstream.client import UpstreamError
from service.upstream.load import read_load

BUSY = (429, 503)

Outcome = Literal["stored", "landed", "failed", "busy"]


@dataclass(frozen=True, slots=True)
class Came:
    """What came of it. busy: nobody could take it now; landed: an answer is there, stored by a user or another."""

    outcome: Outcome
    entry_id: UUID | None = None
    tokens: int = 0
    cost_ms: float | None = None


async def has_room(runtime: Runtime, model: str) -> bool:
    """Whether the model's server is seen and has room now for what nobody waits for."""
    settings = runtime.settings
    if await runtime.models.identity(model) is None:
        return False
    try:
        load = await read_load(runtime.upstream, model)
    except UpstreamError:
        return False
    return load.has_room(waiting=settings.prefetch_max_waiting, kv_usage=settings.prefetch_max_kv_usage)


async def ask_ahead(runtime: Runtime, repeat: Repeat, *, renew: bool = True) -> Came:
    """Ask the model for a kept request and store the answer, as its user's request would have.

    A user who asks the same meanwhile waits for this answer, and the other way round. renew: also where an answer
    lives.
    """
    await runtime.embedder.first_try()
    if runtime.embedder.failure is not None:
        return Came("busy")  # the answer could not be stored
    try:
        cache, asked, plan = await _as_asked(runtime, repeat)
        if not plan.stores:
            return Came("failed")
        if not renew and await look_up_stale(runtime, cache, plan.ask, 0.0) is not None:
            identity = plan.identity
            model_key = identity.scope.model.key
            await prefetch.confirm(runtime.db, cache.row, identity.request_key, identity.exact_key, model_key)
            return Came("landed")
        return await _together(runtime, asked, plan)
    except UpstreamError:
        runtime.models.suspect(repeat.model)
        return Came("busy")
    except SemcacheError:
        return Came("failed")


async def found_before(runtime: Runtime, repeat: Repeat) -> Looked | None:
    """The stored answer to a kept request, which may have ended within the hour.

    Raises: SemcacheError.
    """
    cache, _, plan = await _as_asked(runtime, repeat)
    return await look_up_stale(runtime, cache, plan.ask, LONGEST_STALE_MS / 1000)


async def _as_asked(runtime: Runtime, repeat: Repeat) -> tuple[OpenCache, Asked, Plan]:
    call = _call(repeat, runtime.settings.prefetch_priority)
    model = await runtime.models.identity(call.model)
    cache = await open_cache(runtime, Tenant(repeat.tenant_id, repeat.tenant), repeat.cache)
    plan = make_plan(call, cache, model)
    return cache, Asked(call, provenance="prefetch", tenant=cache.tenant, cache=cache, plan=plan), plan


async def _together(runtime: Runtime, asked: Asked, plan: Plan) -> Came:
    place = await runtime.leadership.take(
        plan.cache,
        plan.flight_name,
        plan.identity.exact_key,
        begun=time.perf_counter(),
        patience=runtime.settings.database_timeout,
    )
    if place.landed:
        return Came("landed")
    try:
        return await _ask(runtime, asked, plan)
    finally:
        await runtime.leadership.end(plan.flight_name)


async def _ask(runtime: Runtime, asked: Asked, plan: Plan) -> Came:
    exchange = await open_exchange(
        runtime.upstream, asked.call, max_bytes=runtime.settings.max_answer_bytes, count=False
    )
    async for _ in exchange.chunks():
        pass
    if not exchange.head.good:
        return Came("busy" if exchange.head.status in BUSY else "failed")
    fresh = await whole_answer(runtime, asked, plan, exchange)
    entry_id = await keep(runtime, asked, plan, exchange, fresh) if fresh else None
    return Came("stored" if entry_id else "failed", entry_id, exchange.spent, exchange.cost_ms)


def _call(repeat: Repeat, priority: int | None) -> Call:
    raw = repeat.body.encode("utf-8", "surrogatepass")
    ttl = None if repeat.ttl_ms is None else repeat.ttl_ms / 1000
    return Call(
        endpoint=repeat.endpoint,
        path=PATHS[repeat.endpoint],
        query="",
        headers=[(b"content-type", b"application/json")],
        raw=raw if priority is None else edit_object(raw, add={"priority": priority}),
        body=parse_body(raw),
        controls=Controls(namespace=repeat.cache, ttl=ttl, tags=tuple(repeat.tags)),
        key=None,
    )


__all__ = ["Came", "Outcome", "ask_ahead", "found_before", "has_room"]
