"""The neighbours of a request, as the store found them and as the policies judge them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from service.cache.directory import OpenCache
from service.identity.conversation import semantic_text
from service.policy.decision import Candidate, Decision, Policy, Query
from service.policy.guards.features import features_of
from service.policy.policies import NOTHING_LEARNED, Decider
from service.store.rows import EmbedderId, Found


@dataclass(frozen=True, slots=True)
class Nearby:
    """The neighbours that were decided on, nearest first, as the store and as the policy know them."""

    query: Query
    embedder_id: EmbedderId
    found: Sequence[Found]
    candidates: Sequence[Candidate]
    decision: Decision


def judge(
    cache: OpenCache,
    text: str,
    embedder_id: EmbedderId,
    found: Sequence[Found],
    *,
    threshold: float | None,
    asked: Policy | None,
) -> Nearby:
    """Decide by the cache's policy, and by the one that the caller asked for beside it."""
    query, candidates = Query(text, features_of(text)), [_candidate(f) for f in found]
    fits = {candidate.entry_id: f.labels.fit for candidate, f in zip(candidates, found, strict=True)}
    decider = Decider(
        cache.policy,
        cache.learned.get(embedder_id, NOTHING_LEARNED),
        fits=lambda candidate: fits[candidate.entry_id],
        draw=random.random(),  # noqa: S311 - which requests explore is no secret
        threshold=threshold,
    )
    return Nearby(query, embedder_id, found, candidates, decider.decide(query, candidates, asked))


def _candidate(found: Found) -> Candidate:
    text = semantic_text(found.prompt) or ""
    answer = found.answer_key or found.entry_id.bytes
    labels = found.labels
    return Candidate(
        found.entry_id.hex, found.similarity, text, features_of(text), answer.hex(), labels.confirmed, labels.refuted
    )


__all__ = ["Nearby", "judge"]
