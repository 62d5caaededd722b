"""Who asks, and which cache: remembered under the replica's lease, so that a normal request asks nobody."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.policy.cache_policy import CachePolicy, read_policy
from service.policy.needs import unmet
from service.policy.policies import Learned
from service.settings import DEFAULT_TENANT
from service.store import caches, calibrations, tenants
from service.store.rows import CacheRow, EmbedderId
from service.store.tenants import Tenant, key_hash

logger = logging.getLogger("semcache.cache")


@dataclass(frozen=True, slots=True)
class OpenCache:
    """A cache of a tenant with its policy, whole, and with what it has learned, by embedder."""

    tenant: Tenant
    row: CacheRow
    policy: CachePolicy
    learned: Mapping[EmbedderId, Learned] = field(default_factory=dict)


async def authenticate(runtime: Runtime, key: str | None) -> Tenant:
    """Whose key this is. Without any key ever made, requests act as the tenant `default`.

    Raises: SemcacheError(UNAUTHENTICATED).
    """
    name = _key_name(key)
    known: Tenant | None = runtime.memory.named(name)
    if known is None:
        mark = runtime.memory.mark
        known = await _tenant_of(runtime, key)
        runtime.memory.remember_named(name, None, known, mark=mark)
    runtime.known_keys.confirm(name, known)
    return known


async def keys_exist(runtime: Runtime) -> bool:
    """Whether a key was ever made. Raises: SemcacheError(DATABASE_UNAVAILABLE)."""
    return await tenants.any_key(runtime.db)


def recently_authenticated(runtime: Runtime, key: str | None) -> Tenant | None:
    """Whose key this was when the database last said so, within SEMCACHE_KEY_GRACE.

    For passing a request on while the database does not answer, never for serving what is stored: the key may have
    been revoked since.
    """
    return runtime.known_keys.within(_key_name(key), runtime.settings.key_grace)


async def _tenant_of(runtime: Runtime, key: str | None) -> Tenant:
    tenant = await tenants.find_by_key(runtime.db, key) if key else None
    if tenant is not None:
        return tenant
    if await tenants.any_key(runtime.db):
        runtime.known_keys.deny(_key_name(key))
        raise SemcacheError(
            Code.UNAUTHENTICATED,
            "send `Authorization: Bearer KEY` with a key that `pgsemcache keys create --tenant NAME` printed",
        )
    return await tenants.ensure(runtime.db, DEFAULT_TENANT)


def _key_name(key: str | None) -> tuple[str, bytes | None]:
    return "tenant", key_hash(key) if key else None


def _cache_name(tenant: Tenant, name: str) -> tuple[str, int, str]:
    return "cache", tenant.tenant_id, name


def recall_cache(runtime: Runtime, key: str | None, name: str) -> OpenCache | None:
    """The cache that `authenticate` and `open_cache` would give, where both remember; at once, as hits want it."""
    tenant: Tenant | None = runtime.memory.named(_key_name(key))
    if tenant is None:
        return None
    runtime.known_keys.confirm(_key_name(key), tenant)
    known: OpenCache | None = runtime.memory.named(_cache_name(tenant, name))
    return known


async def open_cache(runtime: Runtime, tenant: Tenant, name: str) -> OpenCache:
    """Raises: SemcacheError(CACHE_NOT_FOUND)."""
    key = _cache_name(tenant, name)
    known: OpenCache | None = runtime.memory.named(key)
    if known is not None:
        return known
    mark = runtime.memory.mark
    found = await reopen_cache(runtime, tenant, name)
    _warn(runtime, found)
    size = sum(learned.bytes for learned in found.learned.values())
    runtime.memory.remember_named(key, found.row.cache_id, found, size=size, mark=mark)
    return found


def _warn(runtime: Runtime, cache: OpenCache) -> None:
    """Tell once in the log what a policy asks for in vain: the settings may have changed since it was set."""
    for lacking in unmet(cache.policy, runtime.settings):
        if (warned := (cache.row.cache_id, lacking)) not in runtime.warned:
            runtime.warned.add(warned)
            logger.warning("cache %s of tenant %s: %s", cache.row.name, cache.tenant.name, lacking)


async def reopen_cache(runtime: Runtime, tenant: Tenant, name: str) -> OpenCache:
    """The cache as the database has it now, whatever is remembered. Raises: SemcacheError(CACHE_NOT_FOUND)."""
    row = await caches.find(runtime.db, tenant.tenant_id, name)
    return OpenCache(tenant, row, read_policy(row.policy), await calibrations.read(runtime.db, row))


async def list_caches(runtime: Runtime, tenant: Tenant, *, after: str | None, limit: int) -> list[OpenCache]:
    """Caches by name, after the last name of the page before; without what they have learned."""
    rows = await caches.page(runtime.db, tenant.tenant_id, after=after, limit=limit)
    return [OpenCache(tenant, row, read_policy(row.policy)) for row in rows]


__all__ = [
    "OpenCache",
    "authenticate",
    "keys_exist",
    "list_caches",
    "open_cache",
    "recall_cache",
    "recently_authenticated",
    "reopen_cache",
]
