"""Tenants and their API keys. Only a key's SHA-256 is ever stored or sent to the database."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from service.errors import Code, SemcacheError
from service.store.database import Database
from service.store.queries import query
from service.store.rows import InvalidationId, TenantId


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An API key as an operator may see it."""

    api_key_id: int
    tenant: str
    hint: str
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """What all caches of a tenant hold, and how much they may; None: no limit."""

    tenant: str
    entries: int
    max_entries: int | None
    bytes: int
    max_bytes: int | None


@dataclass(frozen=True, slots=True)
class Tenant:
    tenant_id: TenantId
    name: str


async def ensure(db: Database, name: str) -> Tenant:
    """Find or make a tenant, with its cache named `default`."""
    async with db.connection() as connection:
        row = await connection.one("select semcache.ensure_tenant(%s) as tenant_id", (name,))
        connection.tenant_id = None
    return Tenant(TenantId(row["tenant_id"]), name)


async def find(db: Database, name: str) -> Tenant:
    """Raises: SemcacheError(INVALID_DATA) where there is none of this name."""
    async with db.connection() as connection:
        cursor = await connection.execute("select tenant_id from semcache.tenant where name = %s", (name,))
        row = await cursor.fetchone()
    if row is None:
        raise SemcacheError(Code.INVALID_DATA, "there is no tenant of this name; see `pgsemcache keys list`")
    return Tenant(TenantId(row["tenant_id"]), name)


async def find_by_key(db: Database, key: str) -> Tenant | None:
    """Whose key this is; None for an unknown or revoked one."""
    async with db.connection() as connection:
        cursor = await connection.execute(query("find_key"), {"key_hash": key_hash(key)}, prepare=True)
        row = await cursor.fetchone()
    return Tenant(TenantId(row["tenant_id"]), row["tenant"]) if row else None


async def any_key(db: Database) -> bool:
    """Whether a key was ever made: from then on nobody enters without one."""
    async with db.connection() as connection:
        row = await connection.one("select exists (select from semcache.api_key) as made")
    return bool(row["made"])


async def create_key(db: Database, tenant: Tenant, key: str) -> tuple[int, InvalidationId]:
    """Note a new key and return its number."""
    async with db.connection() as connection:
        row = await connection.one(
            "select api_key_id, invalidation_id from semcache.create_key(%s, %s, %s)",
            (tenant.tenant_id, key_hash(key), key[:8]),
        )
    return row["api_key_id"], row["invalidation_id"]


async def list_keys(db: Database) -> list[KeyRow]:
    async with db.connection() as connection:
        return [KeyRow(**row) for row in await (await connection.execute(query("list_keys"))).fetchall()]


async def revoke_key(db: Database, api_key_id: int) -> InvalidationId | None:
    """None where there is no such key or it was revoked before."""
    async with db.connection() as connection:
        row = await connection.one("select semcache.revoke_key(%s) as invalidation_id", (api_key_id,))
    return cast("InvalidationId | None", row["invalidation_id"])


async def set_quota(db: Database, tenant: str, *, max_entries: int | None, max_bytes: int | None) -> bool:
    """False where there is no such tenant. `db` acts as the worker, here and below."""
    async with db.connection() as connection:
        row = await connection.one("select semcache.set_quota(%s, %s, %s) as known", (tenant, max_entries, max_bytes))
    return bool(row["known"])


async def list_quotas(db: Database) -> list[QuotaRow]:
    async with db.connection() as connection:
        await connection.execute("select semcache.fold_changes()")
        return [QuotaRow(**row) for row in await (await connection.execute(query("list_quotas"))).fetchall()]


def key_hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


__all__ = [
    "KeyRow",
    "QuotaRow",
    "Tenant",
    "any_key",
    "create_key",
    "ensure",
    "find",
    "find_by_key",
    "key_hash",
    "list_keys",
    "list_quotas",
    "revoke_key",
    "set_quota",
]
