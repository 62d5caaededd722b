"""What lifetimes learn from, and those that scopes have learned."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from service.store.database import Database
from service.store.queries import query
from service.store.rows import CacheRow, ScopeId


async def uses(db: Database, cache: CacheRow, entry_id: UUID) -> int:
    """How often an entry was served; 0 where it is gone."""
    values = {"tenant_id": cache.tenant_id, "entry_id": entry_id}
    async with db.tenant(cache.tenant_id) as connection:
        row = await (await connection.execute(query("entry_uses"), values, prepare=True)).fetchone()
    return int(row["hits"]) if row else 0


async def note(db: Database, cache: CacheRow, scope_id: ScopeId, ttl_ms: int) -> None:
    """Let what was learned of one answer move the lifetime of new entries of its scope."""
    values = {"tenant_id": cache.tenant_id, "scope_id": scope_id, "ttl_ms": ttl_ms}
    async with db.tenant(cache.tenant_id) as connection:
        await connection.execute(query("note_lifetime"), values, prepare=True)


async def adapt_by_hit_rate(db: Database, window: timedelta) -> int:
    """Move lifetimes by the hit rates of this time; returns how many. `db` acts as the worker."""
    async with db.connection(bulk=True) as connection:
        return int((await connection.one("select semcache.adapt_lifetimes(%s) as changed", (window,)))["changed"])


__all__ = ["adapt_by_hit_rate", "note", "uses"]
