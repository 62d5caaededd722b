"""Plans that were made on empty tables, which a connection keeps until the first analyze."""

from __future__ import annotations

import psycopg
from stored import cached, key

from service.store import caches, entries, eviction, flights
from service.store.database import Connection, Database, Limits

BY_KEY = "entry_cache_id_exact_key_attributes_key_variant_key"
BY_ID = "entry_pkey"  # foreign keys too
ONE = Limits(pool_min=1, pool_max=1, timeout=30.0)
SCANS = "select indexrelname as name from pg_stat_user_indexes where relname = 'entry' and idx_scan > 0"
READ = "select sum(idx_tup_read)::int as rows from pg_stat_user_indexes where relname = 'entry'"


async def test_a_request_is_looked_up_by_its_key(database_url: str) -> None:
    db = Database(database_url, ONE)
    await db.open()
    known = await cached(db)
    await known.store("second")
    await known.find()
    lead = flights.Lead(known.cache.tenant_id, "flight", known.holder)
    await flights.acquire(db, known.cache, lead, seconds=1.0, exact_key=key("first"), since=1.0)
    async with db.connection() as connection:
        assert await scanned(connection) == {BY_KEY, BY_ID}
    await db.close()


async def test_an_entry_is_found_by_its_id(database_url: str) -> None:
    db = Database(database_url, ONE)
    await db.open()
    known = await cached(db)
    await known.store("second")
    await entries.get(db, known.cache, known.entry_id)
    await entries.scope_of(db, known.cache, known.entry_id)
    await entries.change(
        db, known.cache, known.entry_id, ttl_ms=None, clear_ttl=False, tags=None, pinned=True, quarantined=None
    )
    await entries.delete(db, known.cache, known.entry_id)
    async with db.connection() as connection:
        assert await scanned(connection) == {BY_KEY, BY_ID, "entry_alias", "entry_output"}
    await db.close()


async def test_the_purge_does_not_read_the_living(database_url: str) -> None:
    db, worker = Database(database_url, ONE), Database(database_url, ONE, role="semcache_worker")
    await db.open()
    await worker.open()
    known = await cached(db)
    await known.store("second")
    await db.close()
    async with worker.connection() as connection:
        before = await read(connection)
        await connection.execute("select semcache.purge_entries(10, '1 day')")
        assert await read(connection) == before
    await worker.close()


async def test_flushed_entries_are_evicted_by_their_epoch(database_url: str) -> None:
    db, worker = Database(database_url, ONE), Database(database_url, ONE, role="semcache_worker")
    await db.open()
    await worker.open()
    known = await cached(db)
    await known.store("second")
    with psycopg.connect(database_url) as connection:
        connection.execute("""update semcache.cache set policy = '{"maxEntries": 1}'""")
    await caches.flush(db, known.cache)
    await db.close()
    assert await eviction.evict(worker, known.cache.cache_id, limit=10, low=1.0)
    async with worker.connection() as connection:
        assert "entry_listing" in await scanned(connection)
        assert await connection.one("select count(*) as entries from semcache.entry") == {"entries": 0}
    await worker.close()


async def scanned(connection: Connection) -> set[str]:
    """The indexes of entries that were read so far."""
    await connection.execute("select pg_stat_force_next_flush()")
    return {row["name"] for row in await (await connection.execute(SCANS)).fetchall()}


async def read(connection: Connection) -> int:
    """How many rows were found in the indexes of entries so far."""
    await connection.execute("select pg_stat_force_next_flush()")
    return int((await connection.one(READ))["rows"])
