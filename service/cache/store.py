"""Storing an answer: identity, vector, one transaction, and then every replica knows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from service.cache.directory import OpenCache
from service.cache.embedding import UNREAD
from service.cache.runtime import Runtime
from service.errors import SemcacheError
from service.identity.canonical import CANONICAL_VERSION, digest
from service.identity.model import MODEL_FIELDS
from service.identity.request import Identity
from service.identity.tier import Tier
from service.json_text import dumps
from service.policy.comparison import answer_key
from service.policy.guards.features import features_of
from service.store import entries
from service.store.entries import Vector
from service.store.rows import EmbedderId, NewEntry, ScopeId, ScopeRow, Stored
from service.telemetry.tracing import span
from service.upstream.answer import Answer


@dataclass(frozen=True, slots=True)
class New:
    """An answer to be stored. ttl: milliseconds, None for the policy's; `scope` where a lookup has just seen it.

    variants: how many answers are kept for this prompt.
    """

    identity: Identity
    prompt: str
    answer: Answer
    provenance: str
    attributes: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    ttl_ms: int | None = None
    cost_ms: float | None = None
    scope: ScopeRow | None = None
    variants: int = 1
    needs_vector: bool = True


@dataclass(frozen=True, slots=True)
class Kept:
    """An acknowledged entry. `exact_only` says why it can only be found exactly, None where neighbours find it."""

    stored: Stored
    exact_only: str | None


async def store_answer(runtime: Runtime, cache: OpenCache, new: New) -> Kept | None:
    """Store an answer; once this returns it is committed, and no replica serves an older one for the request.

    None where the cache was flushed, changed or deleted from since it was opened: nothing is stored then.

    Raises: SemcacheError with DATABASE_UNAVAILABLE, EMBEDDER_UNAVAILABLE or CACHE_NOT_FOUND; nothing is stored then.
    """
    with span("store"):
        return await _store(runtime, cache, new)


async def _store(runtime: Runtime, cache: OpenCache, new: New) -> Kept | None:
    vector, embedder_id, exact_only = await _vector(runtime, cache, new)
    scope_id = new.scope.scope_id if new.scope else await _scope_id(runtime, cache, new.identity)
    prompt_tokens, completion_tokens = new.answer.tokens
    begun = time.perf_counter()
    stored = await entries.store(
        runtime.db,
        cache.row,
        NewEntry(
            scope_id=scope_id,
            exact_key=new.identity.exact_key,
            attributes_key=digest(new.attributes),
            prompt=new.prompt,
            payload=dumps(new.answer.to_payload()),
            provenance=new.provenance,
            attributes=new.attributes,
            tags=new.tags,
            ttl_ms=cache.policy.ttl(new.ttl_ms),
            prompt_tokens=prompt_tokens or None,
            completion_tokens=completion_tokens or None,
            cost_ms=new.cost_ms,
            variants=new.variants,
            answer_key=_answer_key(new.answer),
            features=features_of(new.identity.text) if vector is not None and new.identity.text else None,
        ),
        embedder_id=embedder_id,
        vector=vector,
    )
    runtime.metrics.stage("store").observe(time.perf_counter() - begun)
    if stored is None:
        return None
    await runtime.coherence.invalidated(stored.invalidation_id, cache.row.cache_id, new.identity.exact_key)
    return Kept(stored, exact_only)


def _answer_key(answer: Answer) -> bytes | None:
    said = answer.said
    return answer_key(said) if said.text or said.calls else None


async def _vector(runtime: Runtime, cache: OpenCache, new: New) -> tuple[Vector | None, EmbedderId | None, str | None]:
    identity = new.identity
    if identity.tier is not Tier.SEMANTIC or identity.text is None:
        return None, None, str(identity.reason)
    if cache.policy.mode != "semantic":
        return None, None, "exact_only"
    try:
        vector, embedder_id = await runtime.embedder.embed(identity.text)
    except SemcacheError as error:
        if error.code not in UNREAD and new.needs_vector:
            raise
        return None, None, error.code.slug
    return vector, embedder_id, None


async def _scope_id(runtime: Runtime, cache: OpenCache, identity: Identity) -> ScopeId:
    scope = identity.scope
    return await entries.ensure_scope(
        runtime.db,
        cache.row,
        scope_key=scope.key,
        canonical_version=CANONICAL_VERSION,
        parts=dict(scope.parts),
        model_key=scope.model.key,
        model={name: getattr(scope.model, name) for name in MODEL_FIELDS},
        config_key=scope.sampling_key,
        config=scope.sampling,
    )


__all__ = ["Kept", "New", "store_answer"]
