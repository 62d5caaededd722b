"""Why a request hits or misses: what is near in the whole cache, and what stands in the way of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from service.cache.call import Call
from service.cache.directory import OpenCache
from service.cache.embedding import UNREAD
from service.cache.lookup import ENDS_TOO_SOON, EXACT, FILLING, SEMANTIC, STALE, TOO_OLD, Ask, Looked, look_up
from service.cache.plan import make_plan
from service.cache.runtime import Runtime
from service.cache.second_stage import look_twice
from service.errors import SemcacheError
from service.identity.conversation import semantic_text
from service.identity.model import MODEL_FIELDS
from service.identity.request import Identity
from service.policy.decision import FLOOR, Policy, Reason, rounded_down, rounded_up, would_change
from service.policy.guards.checks import Outcome, Verdict, check
from service.policy.guards.features import features_of
from service.store import entries
from service.store.database import Row
from service.store.rows import Found

_OUTCOMES = {EXACT: "hit", SEMANTIC: "semantic_hit", STALE: "stale", None: "miss"}
_BY_POLICY = frozenset(
    {
        Reason.UNLIKELY,
        Reason.UNFAMILIAR,
        Reason.UNCALIBRATED,
        Reason.EXPLORED,
        Reason.OUTRANKED,
        Reason.DISPUTED,
    }
)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A near entry. `obstacles` are the reasons, in words of a closed set, why it does not serve the prompt;
    `scope_differs_in` names the parts of the scope that are not the same; `guards` has every guard's verdict.
    `probability` and `would_change` are as the policy judged it, where it did."""

    entry_id: UUID
    prompt: str
    similarity: float
    obstacles: list[str]
    scope_differs_in: list[str]
    guards: list[Verdict]
    probability: float | None
    would_change: list[str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a search or the proxy would answer and why. `would_change`: what would turn the verdict, in a sentence.

    `decision` is the policy that judged the neighbours; `cut` the least probability that it serves, if it has one.
    """

    outcome: str
    reason: str
    decision: Policy
    threshold: float
    cut: float | None
    entry_id: UUID | None
    similarity: float | None
    neighbours: list[Neighbour]
    would_change: str


async def explain(runtime: Runtime, cache: OpenCache, ask_with: Callable[[str | None], Ask], limit: int) -> Explanation:
    """Look up as a search does, its second stage included, and then look at what is near in every scope of the cache.

    ask_with: what is asked, given the stand-alone form of the question where there is one. Nothing is kept.
    Raises: SemcacheError with DATABASE_UNAVAILABLE or EMBEDDER_UNAVAILABLE.
    """
    ask = ask_with(None)
    looked = await look_up(runtime, cache, ask)
    if looked.found is None and (question := await runtime.rewriter.question(cache.policy, ask.identity)):
        ask = ask_with(question)
        looked = await look_up(runtime, cache, ask)
    await look_twice(runtime, cache, ask, looked, only_look=True)
    return await _explained(runtime, cache, ask, looked, limit)


async def explain_call(runtime: Runtime, cache: OpenCache, call: Call, limit: int) -> Explanation:
    """What the proxy would do for this request in this cache, whatever namespace it names; the model is not asked.

    Nothing is drawn by lot: a request of which the policy explores some is judged as one that is not.
    Raises: as `explain`.
    """
    model = await runtime.models.identity(call.model)
    plan = make_plan(call, cache, model)
    if plan.reads:

        def ask_with(question: str | None) -> Ask:
            return replace(make_plan(call, cache, model, question).ask, exploration=0.0)

        return await explain(runtime, cache, ask_with, limit)
    looked = Looked(reason=plan.bypass or "refresh", threshold=cache.policy.threshold(plan.ask.threshold))
    told = await _explained(runtime, cache, plan.ask, looked, limit)
    if plan.bypass is None or plan.bypass == "mode_off":
        return replace(told, outcome="bypass" if plan.bypass else "refresh")
    passes_by = f"The request passes by the cache ({plan.bypass}): nothing is looked up or stored for it."
    return replace(told, outcome="bypass", would_change=passes_by)


async def _explained(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked, limit: int) -> Explanation:
    neighbours = await _neighbours(runtime, cache, ask, looked, limit)
    found, decision = looked.found, looked.nearby.decision if looked.nearby else None
    return Explanation(
        outcome=_OUTCOMES[looked.strategy],
        reason=looked.reason,
        decision=decision.policy if decision else cache.policy.decision,
        threshold=looked.threshold,
        cut=decision.cut if decision else None,
        entry_id=found.entry_id if found else None,
        similarity=found.similarity if found else looked.nearest,
        neighbours=neighbours,
        would_change=_would_change(looked, ask.identity.text, neighbours),
    )


async def _neighbours(runtime: Runtime, cache: OpenCache, ask: Ask, looked: Looked, limit: int) -> list[Neighbour]:
    if ask.identity.text is None:
        return []
    try:
        vector, embedder_id = await runtime.embedder.embed(ask.identity.text)
    except SemcacheError as error:
        if error.code not in UNREAD:
            raise
        return []
    rows = await entries.nearest_anywhere(runtime.db, cache.row, embedder_id=embedder_id, vector=vector, limit=limit)
    return [_neighbour(cache, row, ask, looked) for row in rows]


def _neighbour(cache: OpenCache, row: Row, ask: Ask, looked: Looked) -> Neighbour:
    differs, ttl = scope_differences(row, ask.identity), math.inf if row["ttl"] is None else row["ttl"]
    text, threshold = semantic_text(row["prompt"]), looked.threshold
    guards = check(features_of(ask.identity.text or ""), features_of(text or ""))
    decision = looked.nearby.decision if looked.nearby else None
    judged = (
        next((j for j in decision.judged if j.candidate.entry_id == row["entry_id"].hex), None) if decision else None
    )
    checks = {
        "other_scope": bool(differs),
        "below_floor": row["similarity"] < FLOOR,
        "below_threshold": threshold < 1 and row["similarity"] < threshold,
        "other_text": threshold >= 1 and text != ask.identity.text,
        "other_attributes": any(row["attributes"].get(k) != v for k, v in ask.attributes.items()),
        "client_answer": row["provenance"] == "client" and not ask.client_answers,
        "expired": ttl <= 0,
        ENDS_TOO_SOON: 0 < ttl <= ask.min_ttl,
        TOO_OLD: ask.max_age is not None and row["age"] >= ask.max_age,
        "quarantined": row["quarantined"],
    }
    by_policy = [judged.reason.value] if judged and judged.reason in _BY_POLICY else []
    return Neighbour(
        entry_id=row["entry_id"],
        prompt=row["prompt"],
        similarity=row["similarity"],
        obstacles=[*(name for name, stands in checks.items() if stands), *_barring(cache, guards), *by_policy],
        scope_differs_in=differs,
        guards=guards,
        probability=judged.probability if judged else None,
        would_change=would_change(judged, decision) if judged and decision else [],
    )


def _barring(cache: OpenCache, guards: list[Verdict]) -> list[str]:
    """The guards that keep an entry back under the cache's policy: in `calibrated` a doubt only lowers the chance."""
    policy = cache.policy
    if policy.decision == "threshold" and not policy.guards:
        return []
    passing = (Outcome.PASS, Outcome.GRAY) if policy.decision == "calibrated" else (Outcome.PASS,)
    return [f"guard_{v.guard}" for v in guards if v.outcome not in passing]


def scope_differences(row: Mapping[str, Any], identity: Identity) -> list[str]:
    """Which parts of an entry's scope are not those of a request, by name."""
    scope = identity.scope
    if bytes(row["scope_key"]) == scope.key:
        return []
    model = [f"model.{field}" for field in MODEL_FIELDS if row[field] != getattr(scope.model, field)]
    sampling = [] if row["sampling"] == scope.sampling else ["sampling"]
    names = sorted(set(row["parts"]) | set(scope.parts))
    parts = [name for name in names if row["parts"].get(name) != scope.parts.get(name)]
    return model + sampling + parts or ["canonical_version"]


def _would_change(looked: Looked, text: str | None, neighbours: list[Neighbour]) -> str:
    if looked.found is not None:
        return _would_miss(looked, looked.found, text)
    if barred := _bars_neighbours(looked):
        return barred
    if not neighbours:
        return "Nothing near is stored in this cache: only storing an answer would change it."
    return _would_serve(looked, neighbours[0])


def _would_serve(looked: Looked, nearest: Neighbour) -> str:
    if nearest.obstacles in (["below_threshold"], ["other_text"]):
        least = rounded_down(min(nearest.similarity, 0.9999))
        return f"A threshold of at most {least} instead of {looked.threshold:.4f} would make it a hit."
    if nearest.obstacles and set(nearest.obstacles) <= _BY_POLICY:
        return f"The nearest entry would take {nearest.would_change[0]}."
    if nearest.obstacles:
        return f"In the way of the nearest entry: {', '.join(_words(nearest))}."
    return "Nothing stands in the way of the nearest entry, but the lookup did not come to it: ask again."


def _words(nearest: Neighbour) -> list[str]:
    """The obstacles as people say them, with the parts in which another scope differs."""
    said = {name: name.replace("_", " ") for name in nearest.obstacles}
    if "other_scope" in said:
        said["other_scope"] += f" (differs in {', '.join(nearest.scope_differs_in)})"
    return list(said.values())


def _bars_neighbours(looked: Looked) -> str | None:
    """Why the lookup did not come to judge a neighbour, and what would help; None where it did."""
    if looked.reason == "mode_off":
        return "The mode is off: only another mode would let anything be looked up."
    if looked.reason == "refresh":
        return "The request asks for a fresh answer: without that it would be looked up."
    if looked.reason == FILLING:
        return "The prompt's variants are still being filled: further answers to it would have to be stored."
    if looked.reason in (TOO_OLD, ENDS_TOO_SOON):
        return "This very request has an answer: without max-age and min-fresh in Cache-Control it would be served."
    if looked.reason != "no_entry" and looked.nearby is None:
        return f"No neighbour may be served ({looked.reason}): at most an answer stored for this very request would be."
    return None


def _would_miss(looked: Looked, found: Found, text: str | None) -> str:
    """At a threshold of 1 only the same text is served, and that at any threshold."""
    if looked.strategy in (EXACT, STALE) or semantic_text(found.prompt) == text:
        return "The stored prompt is the same, so no threshold would make it a miss: only the end of the entry would."
    return f"A threshold above {rounded_up(found.similarity)}, or of 1, would make it a miss."


__all__ = ["Explanation", "Neighbour", "explain", "explain_call"]
