"""The data API's use cases: a prompt is searched and stored as the chat request that would ask it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from service.cache.directory import OpenCache, reopen_cache
from service.cache.doubts import judge_later
from service.cache.explain import Explanation
from service.cache.explain import explain as explain_ask
from service.cache.lookup import EXACT, SEMANTIC, Ask, Looked, look_up
from service.cache.observe import observe
from service.cache.recorder import Request
from service.cache.runtime import Runtime
from service.cache.second_stage import look_twice
from service.cache.store import Kept, New, store_answer
from service.errors import SemcacheError
from service.identity.prompt import identify_prompt
from service.identity.request import Identity
from service.identity.scope import Namespace
from service.policy.decision import Policy
from service.store import entries
from service.store.rows import EntryRow
from service.telemetry.tracing import current
from service.upstream.answer import text_answer

AWAITED = 600.0  # seconds from a search that missed to a store that answers it


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with the scope and the filters that it is asked in. threshold and decision: as those of Ask."""

    text: str
    scope: Mapping[str, Any]
    attributes: dict[str, str]
    threshold: float | None = None
    strategies: tuple[str, ...] = (EXACT, SEMANTIC)
    decision: Policy | None = None


async def search(runtime: Runtime, cache: OpenCache, prompt: Prompt, session: str | None = None) -> Looked:
    """Find an answer that may be served, and note what came of it, and in which session. In shadow none may be.

    Raises: SemcacheError with INVALID_DATA for a bad scope, DATABASE_UNAVAILABLE or EMBEDDER_UNAVAILABLE.
    """
    begun = time.perf_counter()
    if runtime.settings.trace_prompts:
        current().set({"semcache.prompt": prompt.text})
    ask = _ask(cache, prompt)
    try:
        looked = await look_up(runtime, cache, ask)
        if looked.found is None and (question := await runtime.rewriter.question(cache.policy, ask.identity)):
            ask = _ask(cache, prompt, question)
            looked = await look_up(runtime, cache, ask)
        await look_twice(runtime, cache, ask, looked)
        if looked.found is None:
            judge_later(runtime, cache, ask, looked)
        if looked.found is None or cache.policy.shadow:
            _await_answer(runtime, cache, ask, looked)
    except SemcacheError as error:
        _note(runtime, cache, ask.identity, session, begun, outcome="error", reason=error.code.slug)
        raise
    outcome = {EXACT: "hit", SEMANTIC: "semantic_hit", None: "miss"}[looked.strategy]
    outcome = "shadow" if cache.policy.shadow else outcome
    _note(runtime, cache, ask.identity, session, begun, outcome=outcome, reason=looked.reason, looked=looked)
    if cache.policy.shadow:
        return replace(looked, found=None, answer=None, strategy=None, reason="shadow")
    return looked


async def explain(runtime: Runtime, cache: OpenCache, prompt: Prompt, limit: int) -> Explanation:
    """Why a search of this prompt hits or misses. Raises as `search`; nothing is noted."""
    return await explain_ask(runtime, cache, lambda question: _ask(cache, prompt, question), limit)


async def store(
    runtime: Runtime,
    cache: OpenCache,
    prompt: Prompt,
    response: str,
    *,
    tags: list[str],
    ttl_ms: int | None,
    provenance: str = "client",
) -> Kept:
    """Store a given answer. When this returns it is committed and every replica's next lookup finds it.

    Raises: SemcacheError with INVALID_DATA for a bad scope, DATABASE_UNAVAILABLE or EMBEDDER_UNAVAILABLE.
    """
    while True:
        identity = _identity(cache, prompt)
        question = await runtime.rewriter.question(cache.policy, identity)
        if question is not None:
            identity = _identity(cache, prompt, question)
        new = New(
            identity=identity,
            prompt=question or prompt.text,
            answer=text_answer("chat", response, identity.scope.model.name),
            provenance=provenance,
            attributes=prompt.attributes,
            tags=tags,
            ttl_ms=ttl_ms,
        )
        if (kept := await store_answer(runtime, cache, new)) is not None:
            _learn(runtime, cache, new)
            return kept
        cache = await reopen_cache(runtime, cache.tenant, cache.row.name)


def _await_answer(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked) -> None:
    """Keep in mind what stood near: if the caller stores an answer soon, it is the fresh one to compare with."""
    if looked.nearby is not None and looked.nearby.found:
        size = sum(len(found.payload) for found in looked.nearby.found)
        runtime.missed.confirm((cache.row.cache_id, ask.identity.exact_key), looked, size)


def _learn(runtime: Runtime, cache: OpenCache, new: New) -> None:
    name = cache.row.cache_id, new.identity.exact_key
    looked = runtime.missed.within(name, AWAITED)
    runtime.missed.deny(name)
    if isinstance(looked, Looked):
        observe(runtime, cache, Ask(new.identity), looked, new.answer, shadow=cache.policy.shadow)


async def read_entry(runtime: Runtime, cache: OpenCache, entry_id: UUID) -> EntryRow:
    """Raises: SemcacheError(ENTRY_NOT_FOUND)."""
    return await entries.get(runtime.db, cache.row, entry_id)


async def list_entries(
    runtime: Runtime, cache: OpenCache, *, after: tuple[datetime, UUID] | None, limit: int, listing: entries.Listing
) -> list[EntryRow]:
    """Living entries after the last one of the page before; pinned and quarantined ones come newest first too."""
    return await entries.page(runtime.db, cache.row, after=after, limit=limit, listing=listing)


def _identity(cache: OpenCache, prompt: Prompt, question: str | None = None) -> Identity:
    namespace = Namespace(cache.tenant.name, cache.row.name)
    return identify_prompt(prompt.text, prompt.scope, namespace=namespace, policy=cache.policy.keys(question=question))


def _ask(cache: OpenCache, prompt: Prompt, question: str | None = None) -> Ask:
    identity = _identity(cache, prompt, question)
    return Ask(identity, prompt.attributes, prompt.strategies, prompt.threshold, prompt.decision)


def _note(
    runtime: Runtime,
    cache: OpenCache,
    identity: Identity,
    session: str | None,
    begun: float,
    *,
    outcome: str,
    reason: str,
    looked: Looked | None = None,
) -> None:
    found = looked.found if looked else None
    is_served = found is not None and outcome != "shadow"
    similarity = (found.similarity if found else looked.nearest) if looked else None
    current().set({"semcache.outcome": outcome, "semcache.reason": reason, "semcache.similarity": similarity})
    latency_ms = round((time.perf_counter() - begun) * 1000, 3)

    def row() -> Request:
        return Request(
            tenant_id=cache.tenant.tenant_id,
            cache_id=cache.row.cache_id,
            scope_key=identity.scope.key,
            request_key=identity.request_key,
            session=session,
            entry_id=found.entry_id if found else None,
            served=is_served,
            outcome=outcome,
            reason=reason,
            similarity=similarity,
            latency_ms=latency_ms,
            stages=looked.stages if looked else {},
            tokens_saved=(found.prompt_tokens or 0) + (found.completion_tokens or 0) if found and is_served else 0,
            saved_ms=found.cost_ms if found and is_served else None,
        )

    runtime.recorder.note(row)


__all__ = ["Prompt", "explain", "list_entries", "read_entry", "search", "store"]
