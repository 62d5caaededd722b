"""A second look at a near entry in doubt, before the lookup ends as a miss."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from service.cache.directory import OpenCache
from service.cache.doubts import ask_judge, doubtful, settle_later
from service.cache.lookup import Ask, Looked, serve_alike
from service.cache.nearby import Nearby
from service.cache.runtime import Runtime
from service.policy.decision import Judged, Reason

ACCEPTED, REJECTED, FAILED = "second_stage_accepted", "second_stage_rejected", "second_stage_failed"

logger = logging.getLogger("semcache.second_stage")


async def look_twice(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked, *, only_look: bool = False) -> None:
    """Let the second stage of the cache's policy serve what the first left in doubt; its failure is a miss.

    only_look: keep nothing of what the judge says.
    """
    stage, nearby = cache.policy.second_stage, looked.nearby
    doubt = doubtful(cache, ask, looked)
    if stage == "none" or nearby is None or doubt is None or doubt.reason is Reason.UNCALIBRATED:
        return
    with looked.stage("second_stage"):
        accepted = await _in_time(_accepts(runtime, cache, nearby, doubt), runtime.settings.second_stage_deadline)
    looked.reason = {True: ACCEPTED, False: REJECTED, None: FAILED}[accepted]
    runtime.metrics.second_stages.labels(stage, looked.reason.removeprefix("second_stage_")).inc()
    if stage == "judge" and accepted is not None and not only_look:
        settle_later(runtime, cache, ask, nearby, doubt, right=accepted)
    if accepted:
        serve_alike(looked, nearby.found, doubt.candidate.text, ask, reason=ACCEPTED)


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


__all__ = ["look_twice"]
