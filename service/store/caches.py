"""Caches: made, found, listed, changed, flushed, deleted, and what they hold and served."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from service.errors import Code, SemcacheError
from service.store.database import Database, Row
from service.store.queries import query
from service.store.rows import CacheRow, InvalidationId, TenantId
from service.store.text import to_columns


async def create(db: Database, tenant_id: TenantId, name: str, policy: dict[str, Any]) -> CacheRow:
    """Raises: SemcacheError(CACHE_EXISTS)."""
    async with db.tenant(tenant_id) as connection:
        await connection.execute("select semcache.create_cache(%s, %s, %s)", (tenant_id, name, Jsonb(policy)))
    return await find(db, tenant_id, name)


async def find(db: Database, tenant_id: TenantId, name: str) -> CacheRow:
    """Raises: SemcacheError(CACHE_NOT_FOUND)."""
    async with db.tenant(tenant_id) as connection:
        cursor = await connection.execute(
            query("find_cache"), {"tenant_id": tenant_id, "name": to_columns(name)[0]}, prepare=True
        )
        row = await cursor.fetchone()
    if row is None:
        raise SemcacheError(Code.CACHE_NOT_FOUND, "there is no cache of this name; POST /v1/caches makes one")
    return CacheRow(tenant_id=tenant_id, **row)


async def page(db: Database, tenant_id: TenantId, *, after: str | None, limit: int) -> list[CacheRow]:
    """Caches by name, after the last name of the page before."""
    async with db.tenant(tenant_id) as connection:
        cursor = await connection.execute(
            query("list_caches"), {"tenant_id": tenant_id, "after": after and to_columns(after)[0], "limit": limit}
        )
        return [CacheRow(tenant_id=tenant_id, **row) for row in await cursor.fetchall()]


async def change_policy(db: Database, cache: CacheRow, policy: dict[str, Any]) -> InvalidationId:
    """Merge keys into the policy; a key that is None goes back to its default."""
    return await _invalidating(
        db,
        cache,
        "select semcache.change_policy(%s, %s, %s) as invalidation_id",
        (cache.tenant_id, cache.cache_id, Jsonb(policy)),
    )


async def flush(db: Database, cache: CacheRow) -> InvalidationId:
    """Make all entries dead."""
    return await _invalidating(
        db, cache, "select semcache.flush_cache(%s, %s) as invalidation_id", (cache.tenant_id, cache.cache_id)
    )


async def delete(db: Database, cache: CacheRow) -> InvalidationId:
    return await _invalidating(
        db,
        cache,
        "select semcache.delete_cache(%s, %s) as invalidation_id",
        (cache.tenant_id, cache.cache_id),
    )


async def stats(db: Database, cache: CacheRow, since: datetime | None) -> tuple[Row, list[Row]]:
    """What the cache holds and how it served, and why not: rows of `cache_stats` and `miss_reasons`."""
    begin = since or datetime.min.replace(tzinfo=UTC)
    values = {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "since": begin}
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        figures = await connection.one(query("cache_stats"), values)
        reasons = await (await connection.execute(query("miss_reasons"), values)).fetchall()
    return figures, reasons


async def _invalidating(
    db: Database, cache: CacheRow, statement: LiteralString, values: tuple[Any, ...]
) -> InvalidationId:
    async with db.tenant(cache.tenant_id) as connection:
        row = await connection.one(statement, values)
    return InvalidationId(row["invalidation_id"])


__all__ = ["change_policy", "create", "delete", "find", "flush", "page", "stats"]
