"""Rows that nobody can be served any more."""

from __future__ import annotations

from datetime import timedelta

from service.store.database import Database


async def purge(db: Database, *, limit: int, keep_log: timedelta) -> int:
    """Remove a batch of dead entries and one of old log rows; returns how many went. `db` acts as the worker."""
    async with db.connection(bulk=True) as connection:
        row = await connection.one("select semcache.purge_entries(%s, %s) as removed", (limit, keep_log))
    return int(row["removed"])


__all__ = ["purge"]
