"""A judge's word on near entries in doubt: noted, and where it is yes the entry answers the request from then on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

from service.cache.directory import OpenCache
from service.cache.lookup import Ask, Looked, answer_of
from service.cache.nearby import Nearby
from service.cache.observe import nearby_sighting
from service.cache.runtime import Runtime
from service.policy.decision import Judged
from service.policy.doubt import in_doubt
from service.store import entries


def doubtful(cache: OpenCache, ask: Ask, looked: Looked) -> Judged | None:
    """The near entry that a second look may accept; None where a caller asked for a policy of its own beside."""
    if looked.nearby is None or ask.decision is not None:
        return None
    return in_doubt(looked.nearby.decision, max(cache.policy.doubt_threshold, ask.threshold or 0.0))


async def ask_judge(runtime: Runtime, nearby: Nearby, doubt: Judged) -> bool | None:
    """Whether the judge finds the entry's answer right; None where it gives no word, or the answer is not in words."""
    found = next(f for f in nearby.found if f.entry_id.hex == doubt.candidate.entry_id)
    answer = answer_of(found)
    if answer is None or answer.said.calls or not answer.text:
        return None
    return await runtime.judging.is_right(
        question=nearby.query.text, stored_question=doubt.candidate.text, stored_answer=answer.text
    )


def judge_later(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked) -> None:
    """Have a miss in doubt judged in the background, where the cache's policy says so."""
    doubt, nearby = doubtful(cache, ask, looked), looked.nearby
    if not cache.policy.judge_doubts or not runtime.judging.there or doubt is None or nearby is None:
        return

    async def work() -> None:
        if (right := await ask_judge(runtime, nearby, doubt)) is not None:
            await _settle(runtime, cache, ask, nearby, doubt, right=right)

    _begin(runtime, cache, ask, doubt, work)


def settle_later(runtime: Runtime, cache: OpenCache, ask: Ask, nearby: Nearby, doubt: Judged, *, right: bool) -> None:
    """Follow the judge's word off the request path."""
    _begin(runtime, cache, ask, doubt, lambda: _settle(runtime, cache, ask, nearby, doubt, right=right))


def _begin(
    runtime: Runtime, cache: OpenCache, ask: Ask, doubt: Judged, work: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    pair = (cache.row.cache_id, ask.identity.exact_key, doubt.candidate.entry_id)
    if not runtime.doubts.begin(pair, work):
        runtime.metrics.unobserved.inc()


async def _settle(runtime: Runtime, cache: OpenCache, ask: Ask, nearby: Nearby, doubt: Judged, *, right: bool) -> None:
    entry_id, question = UUID(doubt.candidate.entry_id), nearby.query.text
    if right and ask.variants == 1 and not cache.policy.shadow:
        made = await entries.alias(runtime.db, cache.row, entry_id, exact_key=ask.identity.exact_key, prompt=question)
        runtime.metrics.aliases.inc(made is not None)
    await runtime.observer.record(
        nearby_sighting(cache, nearby), {entry_id: "correct" if right else "wrong"}, "judge", 1.0
    )


__all__ = ["ask_judge", "doubtful", "judge_later", "settle_later"]
