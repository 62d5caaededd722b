"""What the cache may do for a request, by its identity, the cache's policy and the caller's controls."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from service.cache.call import Call
from service.cache.directory import OpenCache
from service.cache.lookup import EXACT, SEMANTIC, Ask
from service.identity.model import ModelIdentity
from service.identity.request import (
    Identity,
    Namespace,
    identify_chat,
    identify_completion,
    identify_embedding,
    identify_response,
)
from service.identity.tier import Tier
from service.policy.cache_policy import CachePolicy
from service.policy.controls import Controls, tighten_mode, tighten_stale, tighten_ttl
from service.store.rows import CacheRow

UNKNOWN_MODEL = "model_identity_unknown"

_IDENTIFY = {
    "chat": identify_chat,
    "completions": identify_completion,
    "responses": identify_response,
    "embeddings": identify_embedding,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """bypass: why the cache is passed by, in one word. ttl_ms: of the entry; None: it does not expire."""

    cache: CacheRow
    ask: Ask
    bypass: str | None
    refreshes: bool
    stores: bool
    ttl_ms: int | None

    @property
    def identity(self) -> Identity:
        return self.ask.identity

    @property
    def reads(self) -> bool:
        return self.bypass is None and not self.refreshes

    @property
    def joins(self) -> bool:
        """Whether it may share a call to the model with equal requests."""
        return self.reads and self.stores

    @property
    def near(self) -> bool:
        """Whether a neighbour may answer it."""
        return SEMANTIC in self.ask.strategies and self.identity.tier is Tier.SEMANTIC

    @property
    def flight(self) -> Hashable:
        """What requests that may share one call have in common. A change of the cache parts those before and after.

        A tighter request's call says nothing of what is stored for the others.
        """
        identity, ask = self.identity, self.ask
        text = identity.text if self.near else None
        alike = (identity.scope.key, text) if text else identity.exact_key
        tighter = ask.max_age, ask.min_ttl, ask.threshold, ask.decision
        return self.cache.cache_id, self.cache.changes, alike, ask.pick, tighter

    @property
    def flight_name(self) -> str:
        """The same among replicas, for exactly equal requests; it shows nothing of them."""
        parts = f"flight {self.cache.cache_id} {self.cache.changes} {self.ask.pick} ".encode()
        return "flight:" + hashlib.sha256(parts + self.identity.exact_key).hexdigest()


def make_plan(call: Call, cache: OpenCache, model: ModelIdentity | None, question: str | None = None) -> Plan:
    """`model` None: its server has not been seen, so nothing that is stored may be right.

    question: the stand-alone form of the last user message, where the policy wants one and it is known.
    """
    policy, controls = cache.policy, call.controls
    identity = _identity(call, cache, model or ModelIdentity(call.model), question)
    variants = _variants(policy, controls, identity)
    ttl = tighten_ttl(_seconds(policy.ttl_millis), _seconds(policy.max_ttl_millis), controls)
    ttl_ms = None if ttl is None else int(ttl * 1000)
    bypass = UNKNOWN_MODEL if model is None else _bypass(policy, controls, identity, call)
    stores = bypass is None and not (controls.no_store or controls.only_if_cached) and ttl_ms != 0
    explores = stores and variants == 1 and not policy.shadow
    ask = Ask(
        identity,
        strategies=_strategies(policy, controls, identity),
        threshold=controls.threshold,
        decision=controls.decision,
        max_age=controls.max_age,
        variants=variants,
        pick=_pick(call.fields, variants),
        client_answers=policy.client_answers,
        exploration=policy.exploration_rate if explores else 0.0,
        min_ttl=_min_ttl(policy, controls, stale=explores),
    )
    return Plan(cache.row, ask, bypass, controls.refresh, stores, ttl_ms)


def _identity(call: Call, cache: OpenCache, model: ModelIdentity, question: str | None) -> Identity:
    keys = cache.policy.keys(question=question, salt=call.salt)
    namespace = Namespace(cache.tenant.name, cache.row.name)
    return _IDENTIFY[call.endpoint](call.fields, namespace=namespace, model=model, policy=keys)


def _bypass(policy: CachePolicy, controls: Controls, identity: Identity, call: Call) -> str | None:
    if not call.sane:
        return "malformed"
    if tighten_mode(policy.mode, controls) == "off":
        return "mode_off"
    if identity.tier is Tier.BYPASS:
        return str(identity.reason)
    return "sampled" if identity.sampled and policy.sampled == "never" else None


def _strategies(policy: CachePolicy, controls: Controls, identity: Identity) -> tuple[str, ...]:
    exactly = identity.sampled and policy.sampled == "exact"
    return (EXACT,) if exactly or tighten_mode(policy.mode, controls) != "semantic" else (EXACT, SEMANTIC)


def _variants(policy: CachePolicy, controls: Controls, identity: Identity) -> int:
    """A caller may ask for more different answers, which means fewer hits, and never for fewer."""
    return max(policy.variants, controls.variants or 1) if identity.sampled else 1


def _min_ttl(policy: CachePolicy, controls: Controls, *, stale: bool) -> float:
    allowed_ms = policy.stale_while_revalidate_millis if stale else 0
    return -tighten_stale(allowed_ms, controls.stale_while_revalidate, controls.min_fresh)


def _pick(fields: Mapping[str, Any], variants: int) -> int:
    """Which of several answers: the same for the same seed, else for the same user, else any."""
    if variants == 1:
        return 0
    chooser = fields.get("seed") if fields.get("seed") is not None else fields.get("user")
    if chooser is None:
        return random.randrange(variants)  # noqa: S311 - a choice among answers, no secret
    return int.from_bytes(hashlib.sha256(repr(chooser).encode("utf-8", "surrogatepass")).digest()) % variants


def _seconds(millis: int | None) -> float | None:
    return None if millis is None else millis / 1000


__all__ = ["UNKNOWN_MODEL", "Plan", "make_plan"]
