"""What a caller says of an answer: it acts at once, and is learned from where the prompt is known."""

from __future__ import annotations

from uuid import UUID, uuid4

from service.cache.directory import OpenCache
from service.cache.nearby import judge
from service.cache.observe import nearby_sighting
from service.cache.observer import row_of
from service.cache.runtime import Runtime
from service.errors import SemcacheError
from service.identity.conversation import semantic_text
from service.store import entries
from service.store.observations import NewObservation, Verdict


async def give_feedback(
    runtime: Runtime, cache: OpenCache, entry_id: UUID, *, verdict: Verdict, prompt: str | None
) -> None:
    """Note whether an answer was right. A wrong or stale one is served nowhere once this returns.

    Raises: SemcacheError(ENTRY_NOT_FOUND).
    """
    observation = None if prompt is None else await _seen(runtime, cache, entry_id, verdict, prompt)
    invalidation = await entries.record_feedback(
        runtime.db, cache.row, observation or _unseen(entry_id, verdict, prompt)
    )
    await runtime.coherence.invalidated(invalidation, cache.row.cache_id, None)


async def _seen(
    runtime: Runtime, cache: OpenCache, entry_id: UUID, verdict: Verdict, prompt: str
) -> NewObservation | None:
    """The verdict with what the policy sees of the entry for this prompt; None where it does not come to it."""
    text, scope = semantic_text(prompt), await entries.scope_of(runtime.db, cache.row, entry_id)
    if text is None or scope is None:
        return None
    try:
        vector, embedder_id = await runtime.embedder.embed(text)
    except SemcacheError:
        return None
    found = await entries.find_neighbours(
        runtime.db,
        cache.row,
        scope,
        embedder_id=embedder_id,
        vector=vector,
        attributes={},
        neighbours=cache.policy.neighbours,
    )
    nearby = judge(cache, text, embedder_id, found, threshold=None, asked=None)
    sighting = nearby_sighting(cache, nearby, served=entry_id)
    rank = next((rank for rank, near in enumerate(sighting.near) if near.entry_id == entry_id), None)
    if rank is None:
        return None
    return row_of(sighting, rank, uuid4(), verdict, source="feedback", inclusion=None, prompt=prompt)


def _unseen(entry_id: UUID, verdict: Verdict, prompt: str | None) -> NewObservation:
    return NewObservation(
        request_id=uuid4(),
        entry_id=entry_id,
        verdict=verdict,
        source="feedback",
        embedder_id=None,
        similarity=None,
        rank=None,
        signals=None,
        answer_key=None,
        probability=None,
        served=True,
        policy=None,
        inclusion=None,
        prompt=prompt,
    )


__all__ = ["give_feedback"]
