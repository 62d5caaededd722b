"""Asking the model for whoever waits for it: the answer is read to its end and stored, though all may have left."""

from __future__ import annotations

import logging
from uuid import UUID

from service.cache.asked import Asked
from service.cache.exchange import Exchange, open_exchange
from service.cache.flights import Flight
from service.cache.plan import Plan
from service.cache.runtime import Runtime
from service.cache.store import New, store_answer
from service.errors import Code, SemcacheError
from service.json_text import dumps
from service.upstream.answer import Answer, storable
from service.upstream.client import UpstreamError

SHOWN = 1_000  # characters of a prompt that cannot be embedded

logger = logging.getLogger("semcache.proxy")


async def lead(runtime: Runtime, asked: Asked, plan: Plan, flight: Flight, *, shared: bool) -> None:
    """Bring the flight to its end. shared: other replicas may ask the same, so that one of all is to ask.

    A request that got a good beginning is noted here, any other by whoever answers it.
    """
    leads = False
    try:
        leads = shared and await _takes_lead(runtime, asked, plan)
        if shared and not leads:
            flight.begin(None)
            return
        exchange = await open_exchange(
            runtime.upstream, asked.call, max_bytes=runtime.settings.max_answer_bytes, count=True
        )
        if not exchange.head.good:
            runtime.flights.remove(flight)
        flight.begin(exchange.head)
        await _read(runtime, asked, plan, flight, exchange)
    except UpstreamError as error:
        runtime.models.suspect(asked.call.model)
        flight.end(None, error)
    except Exception:
        logger.exception("a call to the model failed")
        flight.end(None, SemcacheError(Code.INTERNAL, "The service failed; its log says how."))
    finally:
        runtime.flights.remove(flight)
        flight.end(None, SemcacheError(Code.UPSTREAM_BROKEN, "The service ended before the answer did."))
        if leads:
            await runtime.leadership.end(plan.flight_name)


async def _read(runtime: Runtime, asked: Asked, plan: Plan, flight: Flight, exchange: Exchange) -> None:
    entry_id = None
    try:
        async for chunk in exchange.chunks():
            flight.log.append(chunk)
        if exchange.answer is None:
            runtime.flights.remove(flight)
        flight.end(exchange.answer)
        entry_id = await _keep(runtime, asked, plan, exchange)
    finally:
        if exchange.head.good:
            cost = exchange.cost_ms if exchange.answer else None
            asked.note(runtime, entry_id=entry_id, spent=exchange.spent, cost_ms=cost)


async def _takes_lead(runtime: Runtime, asked: Asked, plan: Plan) -> bool:
    if asked.cache is None or not runtime.db.up or runtime.coherence.alone:
        return True
    return await runtime.leadership.take(
        asked.cache.row,
        plan.flight_name,
        plan.identity.exact_key,
        begun=asked.begun,
        patience=runtime.patience[asked.call.endpoint].seconds,
    )


async def _keep(runtime: Runtime, asked: Asked, plan: Plan, exchange: Exchange) -> UUID | None:
    """Store a whole answer. A failure is nobody's but the log's."""
    answer, cache = exchange.answer, asked.cache
    if answer is None or cache is None or (asked.hit and asked.shadow):
        return None
    if storable(answer, asked.call.fields) is not None:
        return None
    if await runtime.models.answered(asked.call.model, _fingerprint(answer)) != plan.identity.scope.model:
        return None  # the model was changed meanwhile
    new = New(
        identity=plan.identity,
        prompt=plan.identity.text or _shown(asked),
        answer=answer,
        provenance="upstream",
        tags=list(asked.call.controls.tags),
        ttl_ms=plan.ttl_ms,
        cost_ms=exchange.cost_ms,
        scope=asked.looked.scope if asked.looked else None,
        variants=plan.ask.variants,
    )
    try:
        kept = await store_answer(runtime, cache, new)
    except SemcacheError as error:
        logger.info("an answer was not stored: %s", error.code.slug)
        return None
    if kept is None:
        logger.info("an answer was not stored: invalidated")
        return None
    return kept.stored.entry_id


def _fingerprint(answer: Answer) -> str | None:
    shown = answer.body.get("system_fingerprint")
    return shown if isinstance(shown, str) else None


def _shown(asked: Asked) -> str:
    """The start of what was asked, for people."""
    fields = asked.call.fields
    said = next((fields[name] for name in ("messages", "input", "prompt") if fields.get(name) is not None), "")
    return (said if isinstance(said, str) else dumps(said))[:SHOWN]


__all__ = ["lead"]
