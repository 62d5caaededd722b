"""Jobs that ask the model for kept requests, the most central first, one after the other while it has room."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal

from service.cache.ahead import Came, ask_ahead, found_before, has_room
from service.cache.directory import OpenCache
from service.cache.models import ModelWatch
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.store import jobs, prefetch
from service.store.jobs import Batch, Claimed
from service.store.prefetch import Repeat
from service.upstream.client import UpstreamClient

BATCH = 100
BATCH_SECONDS = 5.0
PATIENCE = 10.0  # seconds for the first look at a model: no user waits
PAUSE = 1.0  # seconds between looks at a model server without room

Outcome = Literal["same", "changed", "busy"]
Ask = Callable[[Runtime, OpenCache, Repeat], Awaitable[Outcome]]


async def lines_to_ask(runtime: Runtime, cache: OpenCache, *, answered: bool) -> list[str]:
    """The lines of a job: all kept requests, or those whose answer lives.

    Raises: SemcacheError(INVALID_DATA) for a cache that keeps none.
    """
    if not cache.policy.prefetch:
        rule = "only a cache whose policy has prefetch on keeps the requests that this job asks again"
        raise SemcacheError(Code.INVALID_DATA, f"kind: {rule}; PATCH its policy, and let users ask")
    nodes = await prefetch.kept(runtime.db, cache.row, runtime.settings.prefetch_measure, answered=answered)
    return [json.dumps({"node": node}) for node in nodes]


async def warm(runtime: Runtime, cache: OpenCache, claimed: Claimed) -> Batch:
    """Ask for what has no living answer of the revision that is served, or of the one that is to take over."""
    async with _after_switch(runtime) as after:
        return await _ask_each(after, cache, claimed, _fill)


async def revalidate(runtime: Runtime, cache: OpenCache, claimed: Claimed) -> Batch:
    """Ask again and compare; the new answer replaces the one before."""
    return await _ask_each(runtime, cache, claimed, _renew)


@asynccontextmanager
async def _after_switch(runtime: Runtime) -> AsyncIterator[Runtime]:
    settings = runtime.settings.after_switch()
    async with UpstreamClient(settings) as upstream:
        models = ModelWatch(settings.model_copy(update={"probe_patience": PATIENCE}), upstream, runtime.background)
        yield replace(runtime, settings=settings, upstream=upstream, models=models)


async def _ask_each(runtime: Runtime, cache: OpenCache, claimed: Claimed, ask: Ask) -> Batch:
    position = claimed.position or {"number": 0, "changed": 0}
    lines = await jobs.lines(runtime.db, claimed.tenant_id, claimed.job_id, after=position["number"], limit=BATCH)
    until, done, errors = time.monotonic() + BATCH_SECONDS, 0, []
    for number, line in lines:
        repeat = await prefetch.repeat(runtime.db, cache.row, json.loads(line)["node"])
        outcome: Outcome = "same"
        try:
            if repeat is not None and (outcome := await _with_room(runtime, cache, repeat, ask, until=until)) == "busy":
                break
            done += 1
        except SemcacheError as error:
            errors.append({"line": number, "rule": error.detail})
        position = {"number": number, "changed": position["changed"] + (outcome == "changed")}
        if time.monotonic() > until:
            break
    return Batch(position, done, errors, ended=len(lines) < BATCH and (not lines or position["number"] == lines[-1][0]))


async def _with_room(runtime: Runtime, cache: OpenCache, repeat: Repeat, ask: Ask, *, until: float) -> Outcome:
    """Busy where there is no room until then: the job takes another turn."""
    while not await has_room(runtime, repeat.model) or (outcome := await ask(runtime, cache, repeat)) == "busy":
        if time.monotonic() > until:
            return "busy"
        await asyncio.sleep(PAUSE)
    return outcome


async def _fill(runtime: Runtime, _: OpenCache, repeat: Repeat) -> Outcome:
    return _told(await ask_ahead(runtime, repeat, renew=False))


async def _renew(runtime: Runtime, cache: OpenCache, repeat: Repeat) -> Outcome:
    before = await found_before(runtime, repeat)
    outcome = _told(await ask_ahead(runtime, repeat))
    after = await found_before(runtime, repeat)
    if outcome == "busy" or before is None or after is None or before.answer is None or after.answer is None:
        return outcome
    question = after.found.prompt if after.found else ""
    same = await runtime.comparer.same(cache.policy.compare, question, after.answer.said, before.answer.said)
    return "changed" if same is False else "same"


def _told(came: Came) -> Outcome:
    if came.outcome == "failed":
        raise SemcacheError(Code.UPSTREAM_BROKEN, "the model gave no answer that may be stored")
    return "busy" if came.outcome == "busy" else "same"


__all__ = ["lines_to_ask", "revalidate", "warm"]
