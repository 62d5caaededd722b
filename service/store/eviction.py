"""Eviction: what gives way in a cache that is over its limit. `db` acts as the worker."""

from __future__ import annotations

from service.store.database import Database
from service.store.queries import query


async def overfull(db: Database) -> list[int]:
    """The numbers of caches that are over a limit, fullest first."""
    async with db.connection(bulk=True) as connection:
        await connection.execute("select semcache.fold_changes()")
        rows = await (await connection.execute(query("overfull_caches"))).fetchall()
    return [row["cache_id"] for row in rows]


async def evict(db: Database, cache_id: int, *, limit: int, low: float) -> bool:
    """Evict a batch, down to the share `low` of the limit; False when there is no more to evict."""
    async with db.connection(bulk=True) as connection:
        row = await connection.one(
            "select semcache.evict_entries(%s, %s, %s) as again", (cache_id, limit, low), prepare=True
        )
    return bool(row["again"])


__all__ = ["evict", "overfull"]
