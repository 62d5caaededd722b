"""A worker is killed in the middle of a task: nothing of that stays, and another does all of it, once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import uuid4

import psycopg
import pytest
from labelled import labels
from processes import kill_waiting, start, waits
from stored import Cached

from service.settings import Settings
from service.store import caches, jobs
from service.store import tasks as store
from service.store.database import Database
from workers.runtime import LEASE_SECONDS, run_claimed, tasks

Sql = psycopg.Connection[tuple[Any, ...]]

ELSEWHERE = {"figures": "writes nothing", "prefetch": "test_prefetch.py kills it while it asks"}
SCAN_LIMIT = 3
LOG = """
select semcache.record_requests(
    c.tenant_id,
    jsonb_agg(jsonb_build_object(
        'at', now() + (n - %(count)s) * interval '1 ms', 'cache_id', c.cache_id, 'session', 's',
        'scope_key', encode(s.scope_key, 'hex'),
        'request_key', encode(sha256(concat(n / 40, ' ', n * n %% 7)::bytea), 'hex'),
        'outcome', %(outcome)s::text, 'reason', 'x', 'latency_ms', 1, 'tokens_saved', 0, 'tokens_spent', 0
    ))
)
from semcache.scope s
join semcache.cache c using (cache_id)
cross join generate_series(1, %(count)s) n
group by c.tenant_id
"""
FOLD_REQUESTS = "select semcache.fold_requests(semcache.log_head(), 100, interval '1 hour')"
FOLD_CHANGES = "select semcache.fold_changes()"
POSTPONE = "insert into semcache.task (name, next_due) select unnest(%s::text[]), now() + interval '1 hour'"


@dataclass(frozen=True)
class Case:
    """What a task is given to do, the lock at which its worker is killed, and the state then and after another."""

    task: str
    given: Callable[[Cached, Sql], Awaitable[object]]
    lock: LiteralString
    state: LiteralString
    killed: tuple[object, ...]
    done: tuple[object, ...]


async def more_entries(known: Cached, _: Sql, count: int = 5) -> None:
    for number in range(count):
        await known.store(f"entry {number}")


async def too_many_entries(known: Cached, sql: Sql) -> None:
    await caches.change_policy(known.db, known.cache, {"maxEntries": 4})
    await more_entries(known, sql)


async def dead_entries(known: Cached, _: Sql) -> None:
    await caches.flush(known.db, known.cache)


async def fashions(known: Cached, sql: Sql) -> None:
    """What is asked changes faster than uses fade."""
    await too_many_entries(known, sql)
    sql.execute(LOG, {"count": 800, "outcome": "miss"})
    sql.execute(FOLD_CHANGES)
    sql.execute("update semcache.cache_size set half_life = 1000000")


async def hits(known: Cached, sql: Sql) -> None:
    await caches.change_policy(known.db, known.cache, {"adaptiveTtl": "hit_rate", "ttlMillis": 600_000})
    sql.execute(LOG, {"count": 20, "outcome": "hit"})


async def a_log(_: Cached, sql: Sql) -> None:
    sql.execute(LOG, {"count": 20, "outcome": "miss"})


async def a_graph(known: Cached, sql: Sql) -> None:
    await a_log(known, sql)
    sql.execute(FOLD_REQUESTS)


async def words(known: Cached, sql: Sql) -> None:
    await more_entries(known, sql, 25)


async def worse_answers(known: Cached, _: Sql) -> None:
    await labels(known, 0.1)
    await labels(known, 0.5)


async def an_export(known: Cached, sql: Sql) -> None:
    await more_entries(known, sql)
    await jobs.create(known.db, known.cache, "export")


CASES = [
    Case(
        "purge",
        dead_entries,
        "lock table semcache.entry_fit in share mode",
        "select count(*), (select count(*) from semcache.output) from semcache.entry",
        killed=(1, 1),
        done=(0, 0),
    ),
    Case(
        "eviction",
        too_many_entries,
        "lock table semcache.evicted in share mode",
        "select count(*), (select sum(evicted) from semcache.cache_size) from semcache.entry",
        killed=(6, 0),
        done=(3, 3),
    ),
    Case(
        "half_life",
        fashions,
        "lock table semcache.cache_size in share mode",
        "select half_life < 1000 from semcache.cache_size",
        killed=(False,),
        done=(True,),
    ),
    Case(
        "index_care",  # its build waits for us, and leaves an index that is not valid
        more_entries,
        "lock table semcache.embedding in row exclusive mode",
        "select count(*), sum(indisvalid::int), (select count(*) from semcache.vector_index) "
        "from pg_index join pg_class c on c.oid = indexrelid where c.relname like 'ann%'",
        killed=(1, 0, 0),
        done=(1, 1, 1),
    ),
    Case(
        "lifetimes",
        hits,
        "lock table semcache.scope in share mode",
        "select ttl_ms from semcache.scope",
        killed=(None,),
        done=(720_000,),
    ),
    Case(
        "jobs",
        an_export,
        "lock table semcache.job_line in share mode",
        "select state, done, (select count(*) from semcache.job_line) from semcache.job",
        killed=("running", 0, 0),
        done=("done", 6, 6),
    ),
    Case(
        "request_graph",
        a_log,
        "lock table semcache.log_reader in share mode",
        "select coalesce(sum(seen), 0), (select count(*) from semcache.request_graph) from semcache.node",
        killed=(0, 0),
        done=(20, 1),
    ),
    Case(
        "request_graph",
        a_graph,
        "lock table semcache.request_graph in share mode",
        "select sum(n.seen), count(c), bool_and(g.scored_at = g.grown_at) "
        "from semcache.node n join semcache.request_graph g using (cache_id) "
        "left join semcache.centrality c using (node_id)",
        killed=(20, 0, None),
        done=(20, 4, True),
    ),
    Case(
        "calibrate",
        words,
        "lock table semcache.entry_fit in share mode",
        "select count(*), (select count(*) from semcache.invalidation) from semcache.calibration",
        killed=(0, 0),
        done=(1, 1),
    ),
    Case(
        "drift",
        worse_answers,
        "lock table semcache.audit_log in share mode",
        "select policy, (select count(*) from semcache.calibration), "
        "(select count(*) from semcache.audit_log where action = 'tighten') from semcache.cache",
        killed=({}, 0, 0),
        done=({"similarityThreshold": 0.975}, 1, 1),
    ),
]


def test_every_task_is_killed_somewhere() -> None:
    assert {task.name for task in tasks(Settings())} == {case.task for case in CASES} | set(ELSEWHERE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.task} {case.given.__name__}")
async def test_a_worker_killed_in_the_middle_leaves_nothing_half_done(
    case: Case, known: Cached, worker: Database, database_url: str
) -> None:
    """The first is a process of its own, which has nothing else to do."""
    settings = Settings(database_url=database_url, exact_scan_limit=SCAN_LIMIT)
    (task,) = (each for each in tasks(settings) if each.name == case.task)
    with psycopg.connect(database_url, autocommit=True) as sql:
        await case.given(known, sql)
        sql.execute(POSTPONE, ([each.name for each in tasks(settings) if each.name != case.task],))
        with psycopg.connect(database_url) as holding:
            holding.execute(case.lock)
            await kill_where_it_waits(sql, database_url)
            assert sql.execute(case.state).fetchone() == case.killed
        sql.execute("update semcache.task set leased_until = now() where leased_until is not null")
        sql.execute("update semcache.job set leased_until = now() where leased_until is not null")
        second = uuid4()
        assert await store.claim(worker, case.task, second, LEASE_SECONDS) is None
        await run_claimed(worker, task, second)
        assert sql.execute(case.state).fetchone() == case.done


async def kill_where_it_waits(sql: Sql, database_url: str) -> None:
    process = start("pgsemcache", "worker", "--database-url", database_url, SEMCACHE_EXACT_SCAN_LIMIT=str(SCAN_LIMIT))
    try:
        async with asyncio.timeout(60):
            while not waits(sql):
                assert process.poll() is None
                await asyncio.sleep(0.02)
    finally:
        kill_waiting(process, sql)
