"""What of a request's fresh answer is learned: which of the near stored answers would have been right."""

from __future__ import annotations

import random
from uuid import UUID

from service.cache.asked import Asked
from service.cache.directory import OpenCache
from service.cache.lookup import EXACT, Ask, Looked, answer_of
from service.cache.nearby import Nearby
from service.cache.observer import Near, Sighting
from service.cache.runtime import Runtime
from service.policy.decision import Reason
from service.policy.policies import NOTHING_LEARNED
from service.policy.sampling import inclusion
from service.policy.signals import see
from service.store.observations import Source
from service.upstream.answer import Answer


def observe_fresh(runtime: Runtime, asked: Asked, fresh: Answer) -> None:
    """Learn from the model's answer to a request."""
    if asked.cache is not None and asked.plan is not None and asked.looked is not None:
        observe(runtime, asked.cache, asked.plan.ask, asked.looked, fresh, shadow=asked.shadow)


def observe(
    runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked, fresh: Answer, *, shadow: bool = False
) -> None:
    """Let the stored answers near a request be compared with a fresh one, as a draw says."""
    sighting = sighting_of(cache, ask, looked) if comparable(cache, ask) else None
    drawn = _draw(cache, looked, shadow=shadow)
    if sighting is not None and sighting.near and drawn is not None:
        source, chance = drawn
        runtime.observer.observe_later(sighting, fresh.said, cache.policy.compare, source, chance)


def comparable(cache: OpenCache, ask: Ask) -> bool:
    """Whether another answer to the request says anything: not where the policy wants different ones."""
    return ask.variants == 1 and not (ask.identity.sampled and cache.policy.compare == "equality")


def _draw(cache: OpenCache, looked: Looked, *, shadow: bool) -> tuple[Source, float] | None:
    """Why the request is observed, and the probability of that; None where it is not."""
    if shadow:
        return "shadow", 1.0
    if looked.nearby is not None and looked.reason == Reason.EXPLORED:
        return "exploration", hit_inclusion(cache, looked.nearby)
    rate = cache.policy.observation_rate
    return ("exploration", rate) if random.random() < rate else None  # noqa: S311 - a sample, no secret


def hit_inclusion(cache: OpenCache, nearby: Nearby) -> float:
    """The probability with which a request that a policy would serve is explored, by its own rule too, or audited."""
    decision, policy = nearby.decision, cache.policy
    served = next((j.probability for j in decision.judged if j.candidate is decision.candidate), None)
    own = 1 - served if decision.policy == "verified" and served is not None else 0.0
    return inclusion(own, policy.exploration_rate, policy.audit_rate)


def sighting_of(cache: OpenCache, ask: Ask, looked: Looked, served: UUID | None = None) -> Sighting | None:
    """What stood near the request; None where nothing was looked at."""
    if looked.strategy == EXACT and looked.found is not None and looked.answer is not None:
        only = Near(looked.found.entry_id, 1.0, looked.answer.said, looked.found.answer_key)
        return Sighting(cache.row, ask.identity.text or "", [only], served=served)
    return None if looked.nearby is None else nearby_sighting(cache, looked.nearby, served)


def nearby_sighting(cache: OpenCache, nearby: Nearby, served: UUID | None = None) -> Sighting:
    frequencies = cache.learned.get(nearby.embedder_id, NOTHING_LEARNED).frequencies
    chances = {j.candidate.entry_id: j.probability for j in nearby.decision.judged}
    found = {f.entry_id.hex: f for f in nearby.found}
    near = []
    for seen in see(nearby.query, nearby.candidates, frequencies):
        entry = found[seen.candidate.entry_id]
        if (stored := answer_of(entry)) is not None:
            chance = chances.get(seen.candidate.entry_id)
            near.append(Near(entry.entry_id, entry.similarity, stored.said, entry.answer_key, seen.signals, chance))
    return Sighting(cache.row, nearby.query.text, near, nearby.decision.policy, nearby.embedder_id, served)


__all__ = ["comparable", "hit_inclusion", "nearby_sighting", "observe", "observe_fresh", "sighting_of"]
