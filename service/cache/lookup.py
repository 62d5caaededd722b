"""The lookup: memory, then exactly this request, then the neighbours of its text, then the policy's decision."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from service.cache.directory import OpenCache
from service.cache.embedding import UNREAD
from service.cache.nearby import Nearby, judge
from service.cache.runtime import Runtime
from service.errors import SemcacheError
from service.identity.canonical import canonical_json
from service.identity.conversation import semantic_text
from service.identity.request import Identity
from service.identity.tier import Tier
from service.policy.decision import Policy, Reason, Ruling
from service.store import entries
from service.store.rows import Found, ScopeRow
from service.telemetry.tracing import Stage
from service.upstream.answer import Answer

EXACT, SEMANTIC, STALE = "exact", "semantic", "stale"
FILLING = "variants_filling"
TOO_OLD, ENDS_TOO_SOON = "too_old", "ends_too_soon"
SAME_REQUEST, UPSTREAM_FAILED, REVALIDATING = "same_request", "upstream_failed", "revalidating"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a caller wants looked up, within what the cache's policy allows.

    threshold: cosine, 0 to 1. decision: a policy that must accept a neighbour beside the cache's own. max_age: seconds.
    variants: how many answers are kept for one prompt, and pick which of them is wanted, from 0 on. client_answers:
    whether one that a client stored may be served. exploration: the share of semantic hits that is withheld, 0 to 1.
    min_ttl: seconds that an answer must have left; below 0 for how many after its end it may be served.
    """

    identity: Identity
    attributes: dict[str, str] = field(default_factory=dict)
    strategies: tuple[str, ...] = (EXACT, SEMANTIC)
    threshold: float | None = None
    decision: Policy | None = None
    max_age: float | None = None
    variants: int = 1
    pick: int = 0
    client_answers: bool = True
    exploration: float = 0.0
    min_ttl: float = 0.0


@dataclass(slots=True)
class Looked:
    """What came of it. `found` and `answer` are set together, on a hit.

    `strategy` is "exact", "semantic" or "stale" on a hit; `nearest` the similarity of the nearest entry that was looked
    at; `age` in seconds; `stages` in milliseconds; `scope` is the scope as the database has it, None where it has none.
    `nearby` is there where the lookup came to neighbours; `withheld` is a semantic hit that is explored instead.
    """

    reason: str
    threshold: float
    found: Found | None = None
    answer: Answer | None = None
    strategy: str | None = None
    nearest: float | None = None
    age: float = 0.0
    ttl: float | None = None
    scope: ScopeRow | None = None
    nearby: Nearby | None = None
    withheld: tuple[Found, Answer] | None = None
    stages: dict[str, float] = field(default_factory=dict)

    def stage(self, name: str) -> Stage:
        return Stage(name, self.stages)


async def look_up(runtime: Runtime, cache: OpenCache, ask: Ask) -> Looked:
    """Find an answer that may be served.

    Raises: SemcacheError with DATABASE_UNAVAILABLE, or EMBEDDER_UNAVAILABLE where only a neighbour could answer.
    """
    looked = Looked(reason="no_entry", threshold=cache.policy.threshold(ask.threshold))
    strategies = _allowed(cache, ask, looked)
    if not strategies:
        return looked
    if EXACT in strategies and _from_memory(runtime, cache, ask, looked):
        return looked
    if await _exactly(runtime, cache, ask, looked, serve=EXACT in strategies):
        return looked
    if SEMANTIC in strategies and looked.scope is not None and ask.identity.text is not None:
        await _by_neighbours(runtime, cache, ask, looked)
    if looked.scope is not None and looked.found is None and looked.reason != Reason.EXPLORED and _wants_fresh(ask):
        await _name_unfresh(runtime, cache, ask, looked)
    return looked


def _allowed(cache: OpenCache, ask: Ask, looked: Looked) -> tuple[str, ...]:
    """The tiers that policy, request and caller all allow; the reason says who narrows them."""
    identity = ask.identity
    if cache.policy.mode == "off":
        looked.reason = "mode_off"
        return ()
    if identity.tier is Tier.BYPASS:
        looked.reason = str(identity.reason)
        return ()
    if cache.policy.mode == "exact" or SEMANTIC not in ask.strategies:
        looked.reason = "exact_only"
    elif identity.tier is Tier.EXACT:
        looked.reason = str(identity.reason)
    else:
        return ask.strategies
    return (EXACT,) if EXACT in ask.strategies else ()


async def look_up_stale(runtime: Runtime, cache: OpenCache, ask: Ask, seconds: float) -> Looked | None:
    """The answer to exactly this request that expired at most so many seconds ago; for a model that gives none.

    Raises: SemcacheError(DATABASE_UNAVAILABLE).
    """
    looked = Looked(reason=UPSTREAM_FAILED, threshold=cache.policy.threshold(ask.threshold))
    looked.scope, found = await _find_exact(runtime, cache, ask, min_ttl=-seconds)
    answer = answer_of(found[0]) if found else None
    if answer is None:
        return None
    looked.found, looked.answer, looked.nearest = found[0], answer, 1.0
    looked.age, looked.ttl = found[0].age, 0.0
    return looked


def _from_memory(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked) -> bool:
    if ask.variants > 1:
        return False
    with looked.stage("l1"):
        kept = runtime.memory.answer(cache.row.cache_id, ask.identity.exact_key, _filter_key(ask))
        if kept is None:
            return False
        found: Found
        found, answer = kept.value
        age = found.age + kept.seconds
        ttl = None if found.ttl is None else found.ttl - kept.seconds
        if ttl is not None and ttl <= max(0.0, ask.min_ttl):
            return False
        if ask.max_age is not None and age > ask.max_age:
            return False
        _serve(looked, found, answer, EXACT, SAME_REQUEST, age=age, ttl=ttl)
        return True


async def _exactly(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked, *, serve: bool) -> bool:
    mark = runtime.memory.mark
    with looked.stage("exact"):
        looked.scope, found = await _find_exact(runtime, cache, ask, min_ttl=ask.min_ttl)
    chosen = _pick(found, ask) if serve else None
    answer = answer_of(chosen) if chosen else None
    if chosen is None or answer is None:
        if found and serve and ask.variants > 1:
            looked.reason = FILLING
        return False
    if chosen.ttl is not None and chosen.ttl <= 0:
        _serve(looked, chosen, answer, STALE, REVALIDATING, age=chosen.age, ttl=0.0)
        return True
    if ask.variants == 1 and not chosen.alias:
        runtime.memory.remember_answer(
            cache.row.cache_id,
            ask.identity.exact_key,
            _filter_key(ask),
            (chosen, answer),
            size=len(chosen.payload) + len(chosen.prompt),
            mark=mark,
        )
    _serve(looked, chosen, answer, EXACT, SAME_REQUEST, age=chosen.age, ttl=chosen.ttl)
    return True


async def _find_exact(
    runtime: Runtime, cache: OpenCache, ask: Ask, *, min_ttl: float
) -> tuple[ScopeRow | None, list[Found]]:
    return await entries.find_exact(
        runtime.db,
        cache.row,
        scope_key=ask.identity.scope.key,
        exact_key=ask.identity.exact_key,
        attributes=ask.attributes,
        max_age=ask.max_age,
        client_answers=ask.client_answers,
        answers=ask.variants,
        min_ttl=min_ttl,
    )


def _wants_fresh(ask: Ask) -> bool:
    return ask.max_age is not None or ask.min_ttl > 0


async def _name_unfresh(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked) -> None:
    """Give its age as the reason where nothing else keeps an answer to this very request back."""
    anyhow = replace(ask, max_age=None)
    _, found = await _find_exact(runtime, cache, anyhow, min_ttl=min(0.0, ask.min_ttl))
    if (kept := _pick(found, ask)) is not None:
        too_old = ask.max_age is not None and kept.age >= ask.max_age
        looked.reason = TOO_OLD if too_old else ENDS_TOO_SOON


def _pick(found: Sequence[Found], ask: Ask) -> Found | None:
    """Of several answers that are kept for one prompt the wanted one; none until all are there."""
    if len(found) < ask.variants:
        return None
    return sorted(found, key=lambda f: f.entry_id)[ask.pick] if ask.variants > 1 else found[0]


async def _by_neighbours(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked) -> None:
    text, scope = ask.identity.text, looked.scope
    if text is None or scope is None:
        return
    try:
        with looked.stage("embed"):
            vector, embedder_id = await runtime.embedder.embed(text)
    except SemcacheError as error:
        if error.code not in UNREAD:
            raise
        looked.reason = error.code.slug
        return
    with looked.stage("neighbours"):
        found = await entries.find_neighbours(
            runtime.db,
            cache.row,
            scope,
            embedder_id=embedder_id,
            vector=vector,
            attributes=ask.attributes,
            neighbours=max(cache.policy.neighbours, ask.variants),
            max_age=ask.max_age,
            min_ttl=max(0.0, ask.min_ttl),
            client_answers=ask.client_answers,
        )
    looked.nearest = found[0].similarity if found else None
    with looked.stage("decide"):
        looked.nearby = judge(cache, text, embedder_id, found, threshold=ask.threshold, asked=ask.decision)
    decision = looked.nearby.decision
    looked.threshold = decision.threshold
    for verdict in decision.verdicts_fired:
        runtime.metrics.guards.labels(verdict.guard, verdict.outcome).inc()
    looked.reason = str(decision.reason)
    if decision.ruling is Ruling.HIT and decision.candidate:
        serve_alike(looked, found, decision.candidate.text, ask, reason=str(Reason.ACCEPTED))


def serve_alike(looked: Looked, found: Sequence[Found], text: str, ask: Ask, *, reason: str) -> None:
    """Serve the answer to this stored text, of several variants the wanted one; or withhold it, to be explored."""
    alike = [f for f in found if semantic_text(f.prompt) == text]
    chosen = _pick(alike, ask) if ask.variants > 1 else alike[0]
    answer = answer_of(chosen) if chosen else None
    if chosen is None:
        looked.reason = FILLING
    elif answer is not None and random.random() < ask.exploration:  # noqa: S311 - which requests explore is no secret
        looked.withheld, looked.reason = (chosen, answer), str(Reason.EXPLORED)
    elif answer is not None:
        _serve(looked, chosen, answer, SEMANTIC, reason, age=chosen.age, ttl=chosen.ttl)


def serve_withheld(looked: Looked) -> Answer | None:
    """The answer that was withheld, served after all; None where none was."""
    if looked.withheld is None:
        return None
    found, answer = looked.withheld
    _serve(looked, found, answer, SEMANTIC, UPSTREAM_FAILED, age=found.age, ttl=found.ttl)
    return answer


def _serve(
    looked: Looked, found: Found, answer: Answer, strategy: str, reason: str, *, age: float, ttl: float | None
) -> None:
    looked.found, looked.answer, looked.strategy, looked.reason = found, answer, strategy, reason
    looked.age, looked.ttl = age, ttl
    if strategy != SEMANTIC:
        looked.nearest = 1.0


def answer_of(found: Found) -> Answer | None:
    """The stored answer; a payload of a form that this release does not know is a miss."""
    return Answer.from_payload(json.loads(found.payload))


def _filter_key(ask: Ask) -> tuple[bytes, bool]:
    return canonical_json(ask.attributes) if ask.attributes else b"", ask.client_answers


__all__ = [
    "ENDS_TOO_SOON",
    "EXACT",
    "FILLING",
    "SEMANTIC",
    "STALE",
    "TOO_OLD",
    "UPSTREAM_FAILED",
    "Ask",
    "Looked",
    "answer_of",
    "look_up",
    "look_up_stale",
    "serve_alike",
    "serve_withheld",
]
