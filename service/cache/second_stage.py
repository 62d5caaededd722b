"""A second look at a near entry in doubt, before the lookup ends as a miss."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from service.cache.directory import OpenCache
from service.cache.lookup import Ask, Looked, answer_of, serve_alike
from service.cache.nearby import Nearby
from service.cache.runtime import Runtime
from service.policy.decision import Judged, Reason
from service.policy.doubt import in_doubt

ACCEPTED, REJECTED, FAILED = "second_stage_accepted", "second_stage_rejected", "second_stage_failed"

logger = logging.getLogger("semcache.second_stage")


async def look_twice(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked) -> None:
    """Let the second stage of the cache's policy serve what the first left in doubt; its failure is a miss."""
    stage, nearby = cache.policy.second_stage, looked.nearby
    doubt = doubtful(cache, ask, looked)
    if stage == "none" or nearby is None or doubt is None or doubt.reason is Reason.UNCALIBRATED:
        return
    with looked.stage("second_stage"):
        accepted = await _in_time(_accepts(runtime, cache, nearby, doubt), runtime.settings.second_stage_deadline)
    looked.reason = {True: ACCEPTED, False: REJECTED, None: FAILED}[accepted]
    runtime.metrics.second_stages.labels(stage, looked.reason.removeprefix("second_stage_")).inc()
    if accepted:
        serve_alike(looked, nearby.found, doubt.candidate.text, ask, reason=ACCEPTED)


def doubtful(cache: OpenCache, ask: Ask, looked: Looked) -> Judged | None:
    """The near entry that a second look may accept; None where a caller asked for a policy of its own beside."""
    if looked.nearby is None or ask.decision is not None:
        return None
    return in_doubt(looked.nearby.decision, max(cache.policy.doubt_threshold, ask.threshold or 0.0))


async def _in_time(verdict: Awaitable[bool | None], seconds: float) -> bool | None:
    try:
        async with asyncio.timeout(seconds):
            return await verdict
    except TimeoutError:
        return None
    except Exception:
        logger.exception("a second stage failed")
        return None


async def _accepts(runtime: Runtime, cache: OpenCache, nearby: Nearby, doubt: Judged) -> bool | None:
    question, stored = nearby.query.text, doubt.candidate.text
    if cache.policy.second_stage == "judge":
        return await ask_judge(runtime, nearby, doubt)
    probability = await runtime.cross_encoder.probability(question, stored)
    return None if probability is None else probability >= cache.policy.second_stage_threshold


async def ask_judge(runtime: Runtime, nearby: Nearby, doubt: Judged) -> bool | None:
    """Whether the judge finds the entry's answer right; None where it gives no word, or the answer is not in words."""
    found = next(f for f in nearby.found if f.entry_id.hex == doubt.candidate.entry_id)
    answer = answer_of(found)
    if answer is None or answer.said.calls or not answer.text:
        return None
    return await runtime.judging.is_right(
        question=nearby.query.text, stored_question=doubt.candidate.text, stored_answer=answer.text
    )


__all__ = ["ACCEPTED", "FAILED", "REJECTED", "ask_judge", "doubtful", "look_twice"]
