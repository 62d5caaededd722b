"""Changing what is kept. Each returns only when no replica serves the old state from memory any more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from service.cache.directory import OpenCache, reopen_cache
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.policy.cache_policy import read_policy
from service.policy.needs import unmet
from service.store import caches, entries
from service.store.tenants import Tenant


@dataclass(frozen=True, slots=True)
class Change:
    """What to change of an entry; None leaves a field. `ttl_ms` counts from now; `clear_ttl` lets it live for ever."""

    ttl_ms: int | None = None
    clear_ttl: bool = False
    tags: list[str] | None = None
    pinned: bool | None = None
    quarantined: bool | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries: all that fit every given part; any one of the tags."""

    attributes: dict[str, str]
    tags: list[str]
    model: str | None
    older_than: datetime | None


async def create_cache(runtime: Runtime, tenant: Tenant, name: str, policy: dict[str, Any]) -> OpenCache:
    """Raises: SemcacheError with CACHE_EXISTS, or INVALID_DATA for a policy that is bad or cannot be followed here."""
    whole = read_policy(policy)
    _require(unmet(whole, runtime.settings))
    row = await caches.create(runtime.db, tenant.tenant_id, name, policy)
    return OpenCache(tenant, row, whole)


async def change_policy(runtime: Runtime, cache: OpenCache, changes: dict[str, Any]) -> OpenCache:
    """Raises: SemcacheError(INVALID_DATA) for a bad policy, and then nothing changed; also for one that cannot be
    followed here, but for keys that could not be followed before."""
    before = unmet(cache.policy, runtime.settings)
    _require([n for n in unmet(read_policy(changes, cache.row.policy), runtime.settings) if n not in before])
    invalidation = await caches.change_policy(runtime.db, cache.row, changes)
    await runtime.coherence.invalidated(invalidation, cache.row.cache_id, None)
    return await reopen_cache(runtime, cache.tenant, cache.row.name)


def _require(lacking: list[str]) -> None:
    if lacking:
        raise SemcacheError(Code.INVALID_DATA, "; ".join(lacking))


async def delete_cache(runtime: Runtime, cache: OpenCache) -> None:
    """Delete a cache. The one named default begins anew, empty and with the default policy."""
    invalidation = await caches.delete(runtime.db, cache.row)
    await runtime.coherence.invalidated(invalidation, cache.row.cache_id, None)


async def flush(runtime: Runtime, cache: OpenCache) -> None:
    invalidation = await caches.flush(runtime.db, cache.row)
    await runtime.coherence.invalidated(invalidation, cache.row.cache_id, None)


async def delete_entry(runtime: Runtime, cache: OpenCache, entry_id: UUID) -> None:
    """Raises: SemcacheError(ENTRY_NOT_FOUND)."""
    invalidation = await entries.delete(runtime.db, cache.row, entry_id)
    await runtime.coherence.invalidated(invalidation, cache.row.cache_id, None)


async def delete_entries(runtime: Runtime, cache: OpenCache, which: Filter, *, dry_run: bool) -> int:
    """How many entries went, or would go. Raises: SemcacheError(EMPTY_FILTER)."""
    deleted, invalidation = await entries.delete_many(
        runtime.db,
        cache.row,
        attributes=which.attributes,
        tags=which.tags,
        model=which.model,
        older_than=which.older_than,
        dry_run=dry_run,
    )
    await runtime.coherence.invalidated(invalidation, cache.row.cache_id, None)
    return deleted


async def change_entry(runtime: Runtime, cache: OpenCache, entry_id: UUID, change: Change) -> None:
    """A lifetime is cut to the policy's longest. Raises: SemcacheError(ENTRY_NOT_FOUND)."""
    sets_ttl = change.clear_ttl or change.ttl_ms is not None
    ttl_ms = cache.policy.cut_ttl(change.ttl_ms) if sets_ttl else None
    invalidation = await entries.change(
        runtime.db,
        cache.row,
        entry_id,
        ttl_ms=ttl_ms,
        clear_ttl=sets_ttl and ttl_ms is None,
        tags=change.tags,
        pinned=change.pinned,
        quarantined=change.quarantined,
    )
    await runtime.coherence.invalidated(invalidation, cache.row.cache_id, None)


__all__ = [
    "Change",
    "Filter",
    "change_entry",
    "change_policy",
    "create_cache",
    "delete_cache",
    "delete_entries",
    "delete_entry",
    "flush",
]
