"""Asking the model ahead of a user, through the same steps as for one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from service.cache.asked import Asked
from service.cache.call import Call, parse_body
from service.cache.directory import open_cache
from service.cache.exchange import open_exchange
from service.cache.keep import keep, whole_answer
from service.cache.plan import Plan, make_plan
from service.cache.runtime import Runtime
from service.errors import SemcacheError
from service.json_text import edit_object
from service.policy.controls import Controls
from service.store.prefetch import Claim
from service.store.tenants import Tenant
from service.upstream.answer import PATHS
from service.upstream.client import UpstreamError

BUSY = (429, 503)

Outcome = Literal["stored", "landed", "failed", "busy"]


@dataclass(frozen=True, slots=True)
class Came:
    """What came of it. busy: nobody could take it now; landed: the answer was stored meanwhile, by a user."""

    outcome: Outcome
    entry_id: UUID | None = None
    tokens: int = 0
    cost_ms: float | None = None


async def ask_ahead(runtime: Runtime, claim: Claim) -> Came:
    """Ask the model for a kept request and store the answer, as its user's request would have.

    A user who asks the same meanwhile waits for this answer, and the other way round.
    """
    await runtime.embedder.first_try()
    if runtime.embedder.failure is not None:
        return Came("busy")  # the answer could not be stored
    call = _call(claim, runtime.settings.prefetch_priority)
    model = await runtime.models.identity(call.model)
    try:
        cache = await open_cache(runtime, Tenant(claim.tenant_id, claim.tenant), claim.cache)
        plan = make_plan(call, cache, model)
        if not plan.stores:
            return Came("failed")
        asked = Asked(call, provenance="prefetch", tenant=cache.tenant, cache=cache, plan=plan)
        return await _together(runtime, asked, plan)
    except UpstreamError:
        runtime.models.suspect(call.model)
        return Came("busy")
    except SemcacheError:
        return Came("failed")


async def _together(runtime: Runtime, asked: Asked, plan: Plan) -> Came:
    leads = await runtime.leadership.take(
        plan.cache,
        plan.flight_name,
        plan.identity.exact_key,
        begun=time.perf_counter(),
        patience=runtime.settings.database_timeout,
    )
    if not leads:
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


def _call(claim: Claim, priority: int | None) -> Call:
    raw = claim.body.encode("utf-8", "surrogatepass")
    ttl = None if claim.ttl_ms is None else claim.ttl_ms / 1000
    return Call(
        endpoint=claim.endpoint,
        path=PATHS[claim.endpoint],
        query="",
        headers=[(b"content-type", b"application/json")],
        raw=raw if priority is None else edit_object(raw, add={"priority": priority}),
        body=parse_body(raw),
        controls=Controls(namespace=claim.cache, ttl=ttl, tags=tuple(claim.tags)),
        key=None,
    )


__all__ = ["Came", "Outcome", "ask_ahead"]
