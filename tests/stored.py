"""A cache with one entry, made through the store as the service does it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID, uuid4

import numpy as np

from service.store import caches, embedders, entries, tenants
from service.store.database import Database
from service.store.observations import NewObservation
from service.store.rows import CacheRow, EmbedderId, Found, NewEntry, ScopeId, ScopeRow, Stored

TENANT = "acme"
VECTOR = np.array([1.0, 0.0, 0.0], dtype=np.float32)


def key(text: str) -> bytes:
    """A key as the service makes them: SHA-256."""
    return hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True)
class Cached:
    """Where the entry is, and how to find it."""

    db: Database
    cache: CacheRow
    scope_id: ScopeId
    scope_key: bytes
    embedder_id: EmbedderId
    entry_id: UUID
    holder: UUID

    async def find(self, prompt: str = "first") -> tuple[ScopeRow | None, Found | None]:
        scope, found = await entries.find_exact(
            self.db, self.cache, scope_key=self.scope_key, exact_key=key(prompt), attributes={}
        )
        return scope, found[0] if found else None

    async def store(self, prompt: str, *, tags: list[str] | None = None) -> Stored:
        cache = await caches.find(self.db, self.cache.tenant_id, self.cache.name)
        stored = await entries.store(
            self.db,
            cache,
            new_entry(self.scope_id, prompt, tags or []),
            embedder_id=self.embedder_id,
            vector=VECTOR,
        )
        assert stored is not None
        return stored


def new_entry(scope_id: ScopeId, prompt: str, tags: list[str]) -> NewEntry:
    return NewEntry(
        scope_id=scope_id,
        exact_key=key(prompt),
        attributes_key=key(""),
        prompt=prompt,
        payload='{"format": 1}',
        provenance="client",
        attributes={},
        tags=tags,
        ttl_ms=None,
    )


async def cached(db: Database, tenant: str = TENANT) -> Cached:
    """The tenant's cache `default` with one entry, for the prompt `first`."""
    owner = await tenants.ensure(db, tenant)
    cache = await caches.find(db, owner.tenant_id, "default")
    embedder_id = await embedders.register(
        db, kind="local", name="tiny", revision="r1", dimensions=3, max_tokens=16, probe=None, same=lambda *_: False
    )
    scope_id = await entries.ensure_scope(
        db,
        cache,
        scope_key=key("scope"),
        canonical_version=1,
        parts={"system": "none"},
        model_key=key("model"),
        model={"name": "m"},
        config_key=key("{}"),
        config="{}",
    )
    stored = await entries.store(db, cache, new_entry(scope_id, "first", []), embedder_id=embedder_id, vector=VECTOR)
    assert stored is not None
    return Cached(db, cache, scope_id, key("scope"), embedder_id, stored.entry_id, uuid4())


def verdict_on(entry_id: UUID) -> NewObservation:
    """What a caller says of an entry, without a prompt."""
    return NewObservation(
        request_id=uuid4(),
        entry_id=entry_id,
        verdict="correct",
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
    )


__all__ = ["TENANT", "VECTOR", "Cached", "cached", "key", "new_entry", "verdict_on"]
