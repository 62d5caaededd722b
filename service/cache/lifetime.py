"""How long a fresh answer may be served, where the policy lets that adapt to how long answers stay right."""

from __future__ import annotations

from service.cache.asked import Asked
from service.cache.directory import OpenCache
from service.cache.lookup import Looked, look_up_stale
from service.cache.plan import Plan
from service.cache.runtime import Runtime
from service.errors import SemcacheError
from service.policy.cache_policy import LONGEST_STALE_MS
from service.store import lifetimes
from service.upstream.answer import Answer


async def fresh_ttl(runtime: Runtime, asked: Asked, plan: Plan, answer: Answer) -> int | None:
    """Milliseconds; None: for ever. A caller's own wish stands.

    An answer that is the same as the one before gets a longer lifetime than that had, another one half of it; what
    nothing is known of gets that of its scope.
    """
    cache = asked.cache
    if cache is None or cache.policy.adaptive_ttl == "off" or asked.call.controls.ttl is not None:
        return plan.ttl_ms
    scope = asked.looked.scope if asked.looked else None
    usual = cache.policy.bounded_ttl((scope.ttl_ms if scope else None) or plan.ttl_ms or 0)
    if cache.policy.adaptive_ttl == "hit_rate" or plan.ask.variants > 1:
        return usual
    try:
        before = await look_up_stale(runtime, cache, plan.ask, LONGEST_STALE_MS / 1000)
        learned = before and await _learned(runtime, cache, plan, before, answer)
        if learned and before and before.scope:
            await lifetimes.note(runtime.db, cache.row, before.scope.scope_id, learned)
    except SemcacheError:
        return usual
    return learned or usual


async def _learned(runtime: Runtime, cache: OpenCache, plan: Plan, before: Looked, answer: Answer) -> int | None:
    """None where the answer before had no end, or nobody can tell whether both say the same."""
    if before.found is None or before.answer is None or before.found.ttl is None:
        return None
    question = plan.identity.text or before.found.prompt
    same = await runtime.comparer.same(cache.policy.compare, question, answer.said, before.answer.said)
    if same is None:
        return None
    ttl, uses = before.found.age + before.found.ttl, await lifetimes.uses(runtime.db, cache.row, before.found.entry_id)
    return cache.policy.adapted_ttl(ttl * 1000, same=same, uses=uses, part=min(before.found.age / ttl, 1.0))


__all__ = ["fresh_ttl"]
