"""Eviction: what gives way in a cache that is over its limit. `db` acts as the worker."""

from __future__ import annotations

from dataclasses import dataclass

from service.store.database import Database
from service.store.queries import query


@dataclass(frozen=True, slots=True)
class Decaying:
    """A limited cache whose entries give way by decayed use. room: entries that fit; half_life: in turnovers of it."""

    cache_id: int
    room: float
    half_life: float


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


async def evicted(db: Database) -> int:
    """How many entries were evicted from all caches, ever."""
    async with db.connection() as connection:
        row = await connection.one("select coalesce(sum(z.evicted), 0)::bigint as count from semcache.cache_size z")
    return int(row["count"])


async def decaying(db: Database) -> list[Decaying]:
    async with db.connection(bulk=True) as connection:
        return [Decaying(**row) for row in await (await connection.execute(query("decaying_caches"))).fetchall()]


async def recent_requests(db: Database, cache_id: int, limit: int) -> list[bytes]:
    """What was asked of a cache lately, oldest first: keys of the requests whose answers were wanted."""
    async with db.connection(bulk=True) as connection:
        cursor = await connection.execute(query("recent_requests"), {"cache_id": cache_id, "limit": limit})
        return [row["key"] for row in await cursor.fetchall()]


async def set_half_life(db: Database, cache_id: int, half_life: float) -> None:
    async with db.connection() as connection:
        await connection.execute(
            "update semcache.cache_size set half_life = %s where cache_id = %s", (half_life, cache_id)
        )


__all__ = ["Decaying", "decaying", "evict", "evicted", "overfull", "recent_requests", "set_half_life"]
