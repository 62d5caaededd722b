"""One request on its way through the cache: how far it got, and what is noted of it at the end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from service.cache.call import Call, Status, Told
from service.cache.directory import OpenCache
from service.cache.flights import Flight
from service.cache.lookup import EXACT, SEMANTIC, STALE, Looked
from service.cache.plan import Plan
from service.cache.recorder import Request
from service.cache.runtime import Runtime
from service.store.tenants import Tenant

IN_FLIGHT = Told("COALESCED", "in_flight")

_STATUS: dict[str | None, Status] = {EXACT: "HIT", SEMANTIC: "SEMANTIC-HIT", STALE: "STALE", None: "MISS"}


@dataclass(slots=True)
class Asked:
    """What is known so far; parts that were not reached in time stay None. provenance: of an answer that is stored.

    flight: the call to the model that was under way, so that nothing was looked up. stages: in milliseconds, what came
    before the lookup's own.
    """

    call: Call
    provenance: Literal["upstream", "prefetch"] = "upstream"
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    begun: float = field(default_factory=time.perf_counter)
    tenant: Tenant | None = None
    cache: OpenCache | None = None
    plan: Plan | None = None
    flight: Flight | None = None
    looked: Looked | None = None
    stages: dict[str, float] = field(default_factory=dict)
    session: str | None = None
    trouble: str | None = None
    latency_ms: float = 0.0
    told: Told = field(default_factory=lambda: Told("ERROR", "internal"))

    @property
    def hit(self) -> bool:
        return self.looked is not None and self.looked.found is not None

    @property
    def shadow(self) -> bool:
        return self.cache is not None and self.cache.policy.shadow

    @property
    def joins(self) -> bool:
        """Whether it may share a call to the model; in shadow each request is decided for itself."""
        return self.plan is not None and self.plan.joins and not self.shadow

    def decide(self) -> None:
        """Settle what the answer says of the cache, unless another request's answer is given."""
        self.latency_ms = round((time.perf_counter() - self.begun) * 1000, 3)
        plan, looked = self.plan, self.looked
        if self.trouble is not None or plan is None:
            self.told = Told("ERROR", self.trouble or "internal")
        elif plan.bypass is not None:
            self.told = Told("BYPASS", plan.bypass)
        elif plan.refreshes:
            self.told = Told("REFRESH", "refresh")
        elif looked is None:
            self.told = Told("MISS", "no_entry")
        elif self.shadow:
            self.told = told_of(looked, "BYPASS", "shadow", near=plan.near)
        else:
            self.told = told_of(looked, _STATUS[looked.strategy], looked.reason, near=plan.near)

    def name_session(self, runtime: Runtime) -> None:
        """Find out which session it belongs to, before the next turn of its conversation comes."""
        if self.session is None and self.plan is not None:
            self.session = runtime.sessions.name(self.plan.identity, self.call.controls.session_id)

    def note(
        self,
        runtime: Runtime,
        told: Told | None = None,
        *,
        entry_id: UUID | None = None,
        saved: int = 0,
        spent: int = 0,
        cost_ms: float | None = None,
    ) -> None:
        """Count the request, and write it to the log where its cache is known. told: where it is not its own."""
        told, cache = told or self.told, self.cache
        if cache is None:
            runtime.metrics.count(_outcome(told), told.reason)
            return

        def row() -> Request:
            self.name_session(runtime)
            return self._row(cache, told, entry_id or told.entry_id, saved=saved, spent=spent, cost_ms=cost_ms)

        runtime.recorder.note(row)

    def _row(
        self, cache: OpenCache, told: Told, entry_id: UUID | None, *, saved: int, spent: int, cost_ms: float | None
    ) -> Request:
        identity = self.plan.identity if self.plan else None
        looked, is_shadow = self.looked, told.reason == "shadow"
        is_served = told.status in ("HIT", "SEMANTIC-HIT", "STALE")
        known = identity is not None and self.plan is not None and self.plan.bypass is None
        return Request(
            tenant_id=cache.tenant.tenant_id,
            cache_id=cache.row.cache_id,
            outcome="shadow" if is_shadow else _outcome(told),
            reason=looked.reason if looked and is_shadow else told.reason,
            latency_ms=self.latency_ms,
            scope_key=identity.scope.key if identity and known else None,
            request_key=identity.request_key if identity and known else None,
            session=self.session,
            turn=identity.turn if identity else None,
            conversation=identity.conversation if identity else None,
            entry_id=entry_id,
            served=is_served,
            similarity=told.similarity,
            stages=self.stages | (looked.stages if looked else {}),
            tokens_saved=saved,
            tokens_spent=spent,
            cost_ms=cost_ms,
            at=self.at,
            saved_ms=looked.found.cost_ms if is_served and looked and looked.found else None,
        )


def _outcome(told: Told) -> str:
    return told.status.lower().replace("-", "_")


def told_of(looked: Looked, status: Status, reason: str, *, near: bool) -> Told:
    found = looked.found
    return Told(
        status,
        reason,
        entry_id=found.entry_id if found else None,
        similarity=found.similarity if found else looked.nearest,
        threshold=looked.threshold if near else None,
        ttl=looked.ttl if found else None,
        age=looked.age if found else None,
    )


__all__ = ["IN_FLIGHT", "Asked", "told_of"]
