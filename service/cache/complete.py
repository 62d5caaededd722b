"""One flow for every request that may be cached: looked up, else asked for, alone or together with its equals.

The cache never breaks a request: what goes wrong with it is told in the answer's headers, and the model is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Hashable

from service.cache.asked import IN_FLIGHT, Asked, told_of
from service.cache.audit import audit
from service.cache.call import Call, Reply, Told, UnansweredError
from service.cache.exchange import Exchange, open_exchange
from service.cache.flights import Broadcast, Flight, Head
from service.cache.front import look_again, prepare
from service.cache.lead import lead
from service.cache.lookup import UPSTREAM_FAILED, Looked, look_up, look_up_stale, serve_withheld
from service.cache.plan import Plan
from service.cache.replies import relay, replay, shared
from service.cache.revalidate import revalidate
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.policy.controls import tighten_stale
from service.upstream.answer import Answer
from service.upstream.client import UpstreamError

FAILED = (500, 502, 503, 504)  # what stale-if-error means by an error (RFC 5861, section 4)

logger = logging.getLogger("semcache.proxy")


async def complete(runtime: Runtime, call: Call) -> Reply:
    """The answer to a request of the OpenAI API.

    Raises: UnansweredError, with the SemcacheError that says why.
    """
    runtime.upstream.require(call.model)
    asked = await prepare(runtime, call)
    asked.decide()
    looked, plan, told = asked.looked, asked.plan, asked.told
    if looked is not None and looked.answer is not None and told.status in ("HIT", "SEMANTIC-HIT", "STALE"):
        if (reply := _given(runtime, asked, looked.answer, told)) is not None:
            (revalidate if told.status == "STALE" else audit)(runtime, asked)
            return reply
        asked.told = told = Told("ERROR", Code.INTERNAL.slug)
    if call.controls.only_if_cached:
        asked.note(runtime)
        detail = "only-if-cached was asked for, and no stored answer may be served"
        raise UnansweredError(SemcacheError(Code.NOT_CACHED, detail), told)
    if plan is None or not plan.stores:
        return await _pass_by(runtime, asked)
    if asked.joins:
        return await _together(runtime, asked, plan)
    return await _lead(runtime, asked, plan, _flight(runtime, call), alone=True)


def _flight(runtime: Runtime, call: Call, key: Hashable = None) -> Flight:
    return Flight(key, call.form, Broadcast(runtime.settings.max_answer_bytes))


async def _together(runtime: Runtime, asked: Asked, plan: Plan) -> Reply:
    """Follow a call that is under way, else begin one. A leader's failure is not shared: its followers ask at once."""
    # The one found before may have ended since: nothing was looked up, and its answer is as good.
    key = plan.flight
    followed = asked.flight or runtime.flights.get(key)
    if followed is not None and (reply := await _follow(runtime, asked, plan, followed)) is not None:
        return reply
    flight = _flight(runtime, asked.call, key)
    is_first = runtime.flights.add(flight)
    return await _lead(runtime, asked, plan, flight, alone=not is_first)


async def _follow(runtime: Runtime, asked: Asked, plan: Plan, flight: Flight) -> Reply | None:
    """None where the leader has nothing to share."""
    call = asked.call
    head = await flight.head.get()
    if head is None:
        return await _landed(runtime, asked, plan)
    if not isinstance(head, Head) or not head.good:
        return None
    if call.stream and head.streams and call.form == flight.form:
        return await _join(runtime, asked, flight, head) if flight.log.whole else None
    answer = await flight.answer.get()
    return None if answer is None else _given(runtime, asked, answer, IN_FLIGHT)


async def _join(runtime: Runtime, asked: Asked, flight: Flight, head: Head) -> Reply | None:
    """The leader's stream as it comes; None where it breaks before its first byte."""
    body = flight.log.read()
    try:
        first = await anext(body, None)
    except SemcacheError:
        return None
    if first is None:
        return None
    return relay(asked.call, shared(head), _followed(runtime, asked, flight, first, body), IN_FLIGHT)


async def _followed(
    runtime: Runtime, asked: Asked, flight: Flight, first: bytes, body: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for chunk in body:
            yield chunk
    finally:
        answer = flight.answer.so_far
        asked.note(runtime, IN_FLIGHT, saved=sum(answer.tokens) if answer else 0)


async def _lead(runtime: Runtime, asked: Asked, plan: Plan, flight: Flight, *, alone: bool) -> Reply:
    body = flight.log.read()
    runtime.background.spawn(lead(runtime, asked, plan, flight, shared=not alone))
    for _ in range(2):  # the model is asked first: a request's body is written by a task of its own
        await asyncio.sleep(0)
    asked.name_session(runtime)
    head = await flight.head.get()
    if head is None:
        landed = await _landed(runtime, asked, plan)
        return landed or await _lead(runtime, asked, plan, _flight(runtime, asked.call), alone=True)
    if isinstance(head, Head) and head.good:
        return relay(asked.call, head, body, asked.told)
    return await _failed(runtime, asked, head, body)


async def _landed(runtime: Runtime, asked: Asked, plan: Plan) -> Reply | None:
    """The answer that another replica has stored since this request was looked up."""
    if asked.cache is None:
        return None
    looked = await look_again(runtime, asked.call, look_up(runtime, asked.cache, plan.ask))
    if looked is None or looked.answer is None:
        return None
    return _given(runtime, asked, looked.answer, told_of(looked, "COALESCED", "landed", near=False))


async def _pass_by(runtime: Runtime, asked: Asked) -> Reply:
    """Ask the model for this request alone; when its caller leaves, the model may stop."""
    try:
        exchange = await open_exchange(
            runtime.upstream, asked.call, max_bytes=runtime.settings.max_answer_bytes, count=False
        )
    except UpstreamError as error:
        runtime.models.suspect(asked.call.model)
        return await _failed(runtime, asked, error, None)
    body = _read(runtime, asked, exchange)
    if exchange.head.good:
        return Reply(exchange.head.status, exchange.head.headers, body, asked.told)
    reply = await _failed(runtime, asked, exchange.head, body)
    if reply.body is not body:
        exchange.close()
    return reply


async def _read(runtime: Runtime, asked: Asked, exchange: Exchange) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in exchange.chunks():
            yield chunk
    finally:
        exchange.close()
        if exchange.head.good:
            cost = exchange.cost_ms if exchange.answer else None
            asked.note(runtime, spent=exchange.spent, cost_ms=cost)


async def _failed(
    runtime: Runtime, asked: Asked, head: Head | SemcacheError, body: AsyncGenerator[bytes, None] | None
) -> Reply:
    """The model's own error, or the answer that was withheld, or an expired one where the policy lets it stand in."""
    if isinstance(head, SemcacheError) or head.status in FAILED:
        if asked.looked is not None and (answer := serve_withheld(asked.looked)) is not None:
            told = told_of(asked.looked, "SEMANTIC-HIT", UPSTREAM_FAILED, near=True)
            if (reply := _given(runtime, asked, answer, told)) is not None:
                return reply
        looked = await _stale(runtime, asked)
        if looked is not None and looked.answer is not None:
            told = told_of(looked, "STALE", looked.reason, near=False)
            if (reply := _given(runtime, asked, looked.answer, told)) is not None:
                return reply
    asked.note(runtime)
    if isinstance(head, SemcacheError):
        raise UnansweredError(head, asked.told)
    return Reply(head.status, head.headers, body or b"", asked.told)


async def _stale(runtime: Runtime, asked: Asked) -> Looked | None:
    cache, plan = asked.cache, asked.plan
    if cache is None or plan is None or not plan.reads:
        return None
    controls = asked.call.controls
    seconds = tighten_stale(cache.policy.stale_if_error_millis, controls.stale_if_error, controls.min_fresh)
    if seconds <= 0:
        return None
    return await look_again(runtime, asked.call, look_up_stale(runtime, cache, plan.ask, seconds))


def _given(runtime: Runtime, asked: Asked, answer: Answer, told: Told) -> Reply | None:
    """None where the answer has not the form of its API: it passed as a body, and may not be told as a stream."""
    try:
        reply = replay(asked.call, answer, told)
    except Exception:
        logger.exception("an answer could not be given again")
        return None
    asked.note(runtime, told, saved=sum(answer.tokens))
    return reply


__all__ = ["complete"]
