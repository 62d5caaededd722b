"""Before the model is asked: who asks, in which cache, what the request is, and whether its answer is here."""

from __future__ import annotations

import logging
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from service.cache.asked import Asked
from service.cache.background import finished
from service.cache.call import Call
from service.cache.directory import authenticate, open_cache, recall_cache, recently_authenticated
from service.cache.lookup import look_up
from service.cache.plan import make_plan
from service.cache.runtime import Runtime
from service.cache.second_stage import look_twice
from service.errors import Code, SemcacheError
from service.identity.model import ModelIdentity
from service.settings import DEFAULT_CACHE
from service.store.tenants import Tenant
from service.telemetry.tracing import Stage

LATE = "deadline"
_CALLERS = (Code.UNAUTHENTICATED, Code.CACHE_NOT_FOUND)

T = TypeVar("T")

logger = logging.getLogger("semcache.proxy")


async def prepare(runtime: Runtime, call: Call) -> Asked:
    """As much as can be found out in time. What goes wrong with the cache is told in `trouble`.

    Raises: SemcacheError where the caller is to blame (UNAUTHENTICATED, CACHE_NOT_FOUND), or where nobody can say who
    asks (DATABASE_UNAVAILABLE).
    """
    found, trouble = Asked(call), None
    known = recently_authenticated(runtime, call.key)
    found.cache = recall_cache(runtime, call.key, call.controls.namespace or DEFAULT_CACHE)
    if found.cache is None:
        trouble = await _in_time(runtime, call, _enter(runtime, found), patient=known is None)
    else:
        found.tenant = found.cache.tenant
    if trouble is None:
        model = await runtime.models.identity(call.model)
        trouble = await _in_time(runtime, call, _look(runtime, found, model))
        if trouble is None and (question := await _question(runtime, found)):
            trouble = await _in_time(runtime, call, _look(runtime, found, model, question))
        if trouble is None and found.cache and found.plan and found.looked:
            await look_twice(runtime, found.cache, found.plan.ask, found.looked)
    # What is late must not change what was decided without it.
    asked = replace(found) if trouble == LATE else found
    asked.trouble, asked.tenant = trouble, found.tenant or known
    if asked.tenant is None:
        raise _unknown()
    return asked


async def admit(runtime: Runtime, key: str | None) -> Tenant:
    """Who asks for something that is not cached. Raises as `prepare`."""
    work = runtime.background.spawn(authenticate(runtime, key))
    known = recently_authenticated(runtime, key)
    in_time = await finished(work, None if known is None else runtime.patience["chat"].seconds)
    if in_time and _reason(work.exception()) is None:
        return work.result()
    if known is None:
        raise _unknown()
    return known


async def _in_time(
    runtime: Runtime, call: Call, step: Coroutine[Any, Any, None], *, patient: bool = False
) -> str | None:
    """Why a step is of no help, None where it is. patient: wait for it, since nothing goes on without it."""
    work = runtime.background.spawn(step)
    in_time = await finished(work, None if patient else runtime.patience[call.endpoint].seconds)
    return _reason(work.exception()) if in_time else LATE


async def look_again(runtime: Runtime, call: Call, look: Coroutine[Any, Any, T]) -> T | None:
    """What a further look of a request finds; None where it fails, or takes longer than the first one might have."""
    work = runtime.background.spawn(look)
    in_time = await finished(work, runtime.patience[call.endpoint].seconds)
    return work.result() if in_time and _reason(work.exception()) is None else None


async def _enter(runtime: Runtime, asked: Asked) -> None:
    asked.tenant = await authenticate(runtime, asked.call.key)
    asked.cache = await open_cache(runtime, asked.tenant, asked.call.controls.namespace or DEFAULT_CACHE)


async def _question(runtime: Runtime, asked: Asked) -> str | None:
    """The stand-alone form of what is asked, where only that can find an answer, and where it can be had."""
    if asked.cache is None or asked.plan is None or asked.plan.bypass or asked.hit:
        return None
    return await runtime.rewriter.question(asked.cache.policy, asked.plan.identity)


async def _look(runtime: Runtime, asked: Asked, model: ModelIdentity | None, question: str | None = None) -> None:
    if asked.cache is None:
        return
    call = asked.call
    with Stage("identity", asked.stages):
        asked.plan = plan = make_plan(call, asked.cache, model, question)
    asked.flight = runtime.flights.get(plan.flight) if asked.joins else None
    if not plan.reads or asked.flight is not None:
        return
    begun = time.perf_counter()
    asked.looked = looked = await look_up(runtime, asked.cache, plan.ask)
    if "neighbours" in looked.stages or ("exact" in looked.stages and not plan.near):
        runtime.patience[call.endpoint].took(time.perf_counter() - begun)


def _unknown() -> SemcacheError:
    return SemcacheError(
        Code.DATABASE_UNAVAILABLE,
        "the database does not answer, so nobody can say whose key this is; a key that was used before goes on for "
        "SEMCACHE_KEY_GRACE seconds",
    )


def _reason(error: BaseException | None) -> str | None:
    """Why the cache is of no help, None where it is. Raises what the caller is to know."""
    if error is None:
        return None
    if isinstance(error, SemcacheError) and error.code in _CALLERS:
        raise error
    if not isinstance(error, SemcacheError):
        logger.error("a lookup failed", exc_info=error)
        return Code.INTERNAL.slug
    return error.code.slug


__all__ = ["admit", "look_again", "prepare"]
