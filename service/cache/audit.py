"""A share of what was served is asked of the model again in the background, so that wrong and old answers are found."""

from __future__ import annotations

import random
from dataclasses import dataclass
from uuid import UUID

from service.cache.asked import Asked
from service.cache.directory import OpenCache
from service.cache.exchange import open_exchange
from service.cache.keep import keep, whole_answer
from service.cache.lookup import EXACT, Looked
from service.cache.manage import Change, change_entry
from service.cache.observe import comparable, hit_inclusion, sighting_of
from service.cache.plan import Plan
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.store.rows import Found


@dataclass(frozen=True, slots=True)
class _Hit:
    """A request with the stored answer that it got."""

    asked: Asked
    cache: OpenCache
    plan: Plan
    looked: Looked
    found: Found


def audit(runtime: Runtime, asked: Asked) -> None:
    """Begin to ask again for a request that got a stored answer, as a draw says; few at a time, else not."""
    cache, plan, looked = asked.cache, asked.plan, asked.looked
    if cache is None or plan is None or looked is None or looked.found is None:
        return
    hit = _Hit(asked, cache, plan, looked, looked.found)
    drawn = random.random() < cache.policy.audit_rate  # noqa: S311 - a sample, no secret
    if drawn and plan.stores and asked.call.endpoint != "embeddings" and comparable(cache, plan.ask):
        runtime.audits.begin(plan.identity.exact_key, lambda: _counted(runtime, hit))


async def _counted(runtime: Runtime, hit: _Hit) -> None:
    outcome = "failed"
    try:
        outcome = await _audit(runtime, hit)
    finally:
        runtime.metrics.audits.labels(outcome).inc()


async def _audit(runtime: Runtime, hit: _Hit) -> str:
    """Ask as the request would have asked; a wrong or old answer is not served any more once this returns."""
    asked, cache, plan, nearby = hit.asked, hit.cache, hit.plan, hit.looked.nearby
    limit = runtime.settings.max_answer_bytes
    exchange = await open_exchange(runtime.upstream, asked.call, max_bytes=limit, count=True)
    async for _ in exchange.chunks():
        pass
    fresh = await whole_answer(runtime, asked, plan, exchange)
    sighting = sighting_of(cache, plan.ask, hit.looked, served=hit.found.entry_id)
    if fresh is None or sighting is None:
        return "failed"
    verdicts = await runtime.observer.compare(sighting, fresh.said, cache.policy.compare)
    verdict = verdicts.get(hit.found.entry_id) if verdicts else None
    if verdict == "wrong":
        await _quarantine(runtime, cache, hit.found.entry_id)
    renews = verdict == "correct" and cache.policy.adaptive_ttl == "recheck" and hit.looked.strategy == EXACT
    if verdict in ("wrong", "stale") or renews:
        await keep(runtime, asked, plan, exchange, fresh)
    chance = hit_inclusion(cache, nearby) if nearby else cache.policy.audit_rate
    await runtime.observer.record(sighting, verdicts, "audit", chance)
    return verdict or "unclear"


async def _quarantine(runtime: Runtime, cache: OpenCache, entry_id: UUID) -> None:
    try:
        await change_entry(runtime, cache, entry_id, Change(quarantined=True))
    except SemcacheError as error:
        if error.code is not Code.ENTRY_NOT_FOUND:
            raise


__all__ = ["audit"]
