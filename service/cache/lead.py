"""Asking the model for whoever waits for it: the answer is read to its end and stored, though all may have left."""

from __future__ import annotations

import asyncio
import logging
import math
from uuid import UUID

from service.cache.asked import IN_FLIGHT, Asked
from service.cache.exchange import Exchange, open_exchange
from service.cache.flights import Flight
from service.cache.keep import keep, to_be_kept, whole_answer
from service.cache.observe import observe_fresh
from service.cache.plan import Plan
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.store.flights import Place
from service.telemetry.tracing import Span
from service.upstream.client import UpstreamError

PAUSE = 0.02  # seconds before an answer is stored: who waits for it, and then asks again, comes first

logger = logging.getLogger("semcache.proxy")


async def lead(runtime: Runtime, asked: Asked, plan: Plan, flight: Flight, *, shared: bool) -> None:
    """Bring the flight to its end. shared: other replicas may ask the same, so that one of all is to ask.

    A request that got a good beginning is noted here, any other by whoever answers it.
    """
    place = Place()
    try:
        if shared:
            place = await take_place(runtime, asked, plan, flight if asked.call.stream else None)
        if place.landed:
            flight.head.settle(None)
        elif place.stream is None or not await _follow(runtime, asked, plan, flight, place.stream):
            await _ask(runtime, asked, plan, flight)
    except UpstreamError as error:
        runtime.models.suspect(asked.call.model)
        flight.end(None, error)
    except Exception:
        logger.exception("a call to the model failed")
        flight.end(None, SemcacheError(Code.INTERNAL, "The service failed; its log says how."))
    finally:
        runtime.flights.remove(flight)
        flight.end(None, SemcacheError(Code.UPSTREAM_BROKEN, "The service ended before the answer did."))
        if place.leads:
            await runtime.leadership.end(plan.flight_name)


async def _ask(runtime: Runtime, asked: Asked, plan: Plan, flight: Flight) -> None:
    exchange = await open_exchange(
        runtime.upstream, asked.call, max_bytes=runtime.settings.max_answer_bytes, count=True
    )
    if not exchange.head.good:
        runtime.flights.remove(flight)
    flight.head.settle(exchange.head)
    entry_id = None
    try:
        await _read(runtime, flight, exchange)
        if not to_be_kept(asked, exchange):
            runtime.flights.remove(flight)  # it is for those who asked while it came
        flight.end(exchange.answer)
        await asyncio.sleep(PAUSE)
        if (fresh := await whole_answer(runtime, asked, plan, exchange)) is not None:
            entry_id = None if asked.hit and asked.shadow else await keep(runtime, asked, plan, exchange, fresh)
            observe_fresh(runtime, asked, fresh)
    finally:
        exchange.close()
        if exchange.head.good:
            cost = exchange.cost_ms if exchange.answer else None
            asked.note(runtime, entry_id=entry_id, spent=exchange.spent, cost_ms=cost)


async def _follow(runtime: Runtime, asked: Asked, plan: Plan, flight: Flight, stream: UUID) -> bool:
    """Pass on what another replica shows of its call; False where that broke off before the first byte."""
    source = runtime.leadership.follow(plan.cache, plan.flight_name, stream)
    try:
        await source.open()
    except UpstreamError:
        return False
    exchange = Exchange(asked.call, source, asked.begun, runtime.settings.max_answer_bytes, Span())
    asked.told = IN_FLIGHT
    flight.head.settle(exchange.head)
    try:
        await _read(runtime, flight, exchange)
        flight.end(exchange.answer)
    finally:
        asked.note(runtime, saved=exchange.spent)
    return True


async def _read(runtime: Runtime, flight: Flight, exchange: Exchange) -> None:
    log = flight.log
    async for chunk in exchange.chunks():
        await log.append(chunk)
        if not log.whole:
            runtime.flights.remove(flight)
            flight.answer.settle(None)
            if not log.wanted:
                break


async def take_place(runtime: Runtime, asked: Asked, plan: Plan, stream: Flight | None = None) -> Place:
    """Where the answer is to come from: stored by another replica, from its stream, or from the model.

    stream: a call that may follow another replica's, or be followed.
    """
    if asked.cache is None or not runtime.db.up or runtime.coherence.alone:
        return Place()
    # Where the lookup came to nothing, the request has waited for the cache already.
    patience = runtime.settings.lookup_deadline if asked.trouble else runtime.patience[asked.call.endpoint].seconds
    return await runtime.leadership.take(
        asked.cache.row,
        plan.flight_name,
        plan.identity.exact_key,
        begun=asked.begun,
        patience=patience,
        longest=runtime.settings.stream_silence if asked.call.stream else math.inf,
        stream=stream,
    )


__all__ = ["lead", "take_place"]
