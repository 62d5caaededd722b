"""A worker is killed in the middle of its transactions: nothing of them stays, and another does all of it, once."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, LiteralString

import psycopg
from processes import start
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from stored import Cached, cached

from service.store import caches

# What each task writes last: it has written something else by then.
LAST = {
    "eviction": "evicted",
    "request_graph": "log_reader",
    "calibrate": "entry_fit",
    "lifetimes": "scope",
    "purge": "entry_fit",
}
LOG = """
select semcache.record_requests(
    %(tenant_id)s,
    jsonb_agg(%(row)s || jsonb_build_object('at', now() - n * interval '1 second'))
)
from generate_series(1, 20) n
"""
WAITING = "select count(distinct pid) = %s as all_wait from pg_locks where not granted"
TERMINATE = "select pg_terminate_backend(pid, 10000) from pg_locks where not granted"
STATE = """
select
    (select count(*) from semcache.entry where cache_id = %(cache_id)s) as entries,
    (select evicted from semcache.cache_size where cache_id = %(cache_id)s) as evicted,
    (select coalesce(sum(seen), 0) from semcache.node) as asked,
    (select count(*) from semcache.calibration) as calibrations,
    (select ttl_ms from semcache.scope where cache_id = %(cache_id)s) as ttl_ms,
    (select count(*) from semcache.entry join semcache.cache c using (cache_id) where c.epoch > 0) as flushed
"""
DONE = "select count(*) = %s as all_done from semcache.task where name = any (%s) and outcome = 'done'"


async def test_a_worker_killed_in_the_middle_leaves_nothing_half_done(known: Cached, database_url: str) -> None:
    other = await cached(known.db, "other")
    for number in range(25):
        await other.store(f"to be learned from {number}")
    for number in range(5):
        await known.store(f"one of six {number}")
    await caches.flush(known.db, (await cached(known.db, "flushed")).cache)
    with psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as sql:
        prepare(sql, known)
        sql.execute("begin")
        sql.execute(f"lock table {', '.join('semcache.' + table for table in set(LAST.values()))} in share mode")
        first = start("pgsemcache", "worker", "--database-url", database_url)
        with psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as watching:
            await until(watching, WAITING, (len(LAST),))
            first.kill()
            await asyncio.to_thread(first.communicate)
            watching.execute(TERMINATE)
        assert state(sql, known) == {
            "entries": 6,
            "evicted": 0,
            "asked": 0,
            "calibrations": 0,
            "ttl_ms": None,
            "flushed": 1,
        }
        sql.execute("commit")
        sql.execute("update semcache.task set leased_until = now()")
        second = start("pgsemcache", "worker", "--database-url", database_url)
        await until(sql, DONE, (len(LAST), list(LAST)))
        second.send_signal(signal.SIGTERM)
        await asyncio.to_thread(second.communicate)
        assert second.returncode == 0
        assert state(sql, known) == {
            "entries": 3,
            "evicted": 3,
            "asked": 20,
            "calibrations": 1,
            "ttl_ms": 720_000,
            "flushed": 0,
        }


def prepare(sql: psycopg.Connection[dict[str, Any]], known: Cached) -> None:
    """Something to do for each task: the cache is too full, and was asked twenty times."""
    policy = {"maxEntries": 4, "adaptiveTtl": "hit_rate", "ttlMillis": 600_000}
    where = {"cache_id": known.cache.cache_id, "tenant_id": known.cache.tenant_id}
    sql.execute(
        "update semcache.cache set policy = %(policy)s where cache_id = %(cache_id)s", where | {"policy": Jsonb(policy)}
    )
    row = {
        "cache_id": known.cache.cache_id,
        "scope_key": known.scope_key.hex(),
        "request_key": known.scope_key.hex(),
        "entry_id": str(known.entry_id),
        "served": True,
        "outcome": "hit",
        "reason": "same_request",
        "session": "s",
        "latency_ms": 1,
        "tokens_saved": 0,
        "tokens_spent": 0,
    }
    sql.execute(LOG, where | {"row": Jsonb(row)})


async def until(sql: psycopg.Connection[dict[str, Any]], statement: LiteralString, values: Any) -> None:
    """Ask again until it is so."""
    async with asyncio.timeout(60):
        while not all((sql.execute(statement, values).fetchone() or {}).values()):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


def state(sql: psycopg.Connection[dict[str, Any]], known: Cached) -> dict[str, Any] | None:
    return sql.execute(STATE, {"cache_id": known.cache.cache_id}).fetchone()
