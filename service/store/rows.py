"""What the store gives back: rows as frozen values, with the field names of the schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NewType
from uuid import UUID

from service.policy.guards.features import Features
from service.policy.verified import Fit

TenantId = NewType("TenantId", int)
CacheId = NewType("CacheId", int)
ScopeId = NewType("ScopeId", int)
EmbedderId = NewType("EmbedderId", int)
InvalidationId = NewType("InvalidationId", int)

JobKind = Literal["import", "export", "re-embed", "warm", "revalidate"]
JobState = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class CacheRow:
    """A cache with the policy keys that were set on it. `changes` counts flushes, bulk deletes and changes of these."""

    tenant_id: TenantId
    cache_id: CacheId
    name: str
    policy: dict[str, Any]
    epoch: int
    changes: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope that exists, and the embedders of whose vectors it has an approximate index.

    ttl_ms: lifetime that its new entries get where lifetimes adapt; None: it has learned none.
    """

    scope_id: ScopeId
    indexed_by: Sequence[EmbedderId] = ()
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """How many labelled requests an entry's answer was right and wrong for, and the fit of the policy verified."""

    confirmed: int = 0
    refuted: int = 0
    fit: Fit | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that a lookup may serve. `payload` is the answer's JSON text, `answer_key` what equal answers share.

    similarity: cosine, 0 to 1; age and ttl: seconds at the reading, ttl None where the entry does not expire. labels:
    of a neighbour. alias: it shares another entry's answer.
    """

    entry_id: UUID
    prompt: str
    attributes: dict[str, str]
    tags: list[str]
    provenance: str
    created_at: datetime
    payload: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_ms: float | None
    answer_key: bytes | None
    similarity: float
    age: float
    ttl: float | None
    labels: Labels = Labels()
    alias: bool = False


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry as the data API shows it. `scope` (model, sampling, hashes of further parts): only by itself.

    alias_of: the entry whose answer it shares, which a judge found right for it.
    """

    entry_id: UUID
    prompt: str
    payload: str
    model: str
    attributes: dict[str, str]
    tags: list[str]
    provenance: str
    alias_of: UUID | None
    pinned: bool
    quarantined_at: datetime | None
    created_at: datetime
    expires_at: datetime | None
    prompt_tokens: int | None
    completion_tokens: int | None
    hits: int
    last_hit_at: datetime | None
    scope: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class NewEntry:
    """What is to be stored. variants: how many answers are kept for one prompt. features: kept with a vector."""

    scope_id: ScopeId
    exact_key: bytes
    attributes_key: bytes
    prompt: str
    payload: str
    provenance: str
    attributes: dict[str, str]
    tags: list[str]
    ttl_ms: int | None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_ms: float | None = None
    variants: int = 1
    answer_key: bytes | None = None
    features: Features | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """An acknowledged entry; `invalidation_id` is set where replicas may remember an older answer."""

    entry_id: UUID
    invalidation_id: InvalidationId | None


@dataclass(frozen=True, slots=True)
class JobRow:
    """How far a job is. changed: answers that a revalidation found to be others by now; errors: the first that could
    not be done, each with its number and rule."""

    job_id: UUID
    kind: JobKind
    state: JobState
    done: int
    failed: int
    total: int
    changed: int
    errors: list[dict[str, Any]]
    created_at: datetime
    ended_at: datetime | None
