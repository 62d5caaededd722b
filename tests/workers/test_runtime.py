"""Tasks of several workers: one does each, and what becomes of a run that fails, hangs, is stopped or is killed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from processes import start
from psycopg.types.json import Jsonb
from running import Service
from stored import Cached

from service.errors import Code, SemcacheError
from service.settings import Settings
from service.store import tasks as store
from service.store.database import Database
from workers import runtime
from workers.runtime import Task, run_claimed, tasks

LOG = """
insert into semcache.request_log (at, tenant_id, cache_id, outcome, reason, latency_ms)
select now() - days * interval '1 day', %s, %s, 'miss', 'no_entry', 1
from unnest('{1,3}'::int[]) days
"""


@dataclass(frozen=True)
class Swept:
    rows: int


def task(run_once: Callable[[Database], Awaitable[object]], **more: Any) -> Task:
    return Task("sweep", 100.0, run_once, **more)


async def do(worker: Database, made: Task) -> dict[str, Any]:
    """Claim and run it; how it stands then."""
    holder = uuid4()
    assert await store.claim(worker, made.name, holder, runtime.LEASE_SECONDS) is None
    await run_claimed(worker, made, holder)
    return await stands(worker)


async def stands(worker: Database) -> dict[str, Any]:
    async with worker.connection() as connection:
        return await connection.one("select outcome, detail, failures from semcache.task")


async def test_what_a_run_did_is_noted(worker: Database) -> None:
    async def sweep(_: Database) -> Swept:
        return Swept(3)

    assert await do(worker, task(sweep)) == {"outcome": "done", "detail": {"rows": 3}, "failures": 0}


async def test_the_log_is_kept_for_as_many_days_as_are_set(worker: Database, known: Cached) -> None:
    (purging,) = (each for each in tasks(Settings(log_days=2)) if each.name == "purge")
    async with worker.connection() as connection:
        await connection.execute(LOG, (known.cache.tenant_id, known.cache.cache_id))
        await do(worker, purging)
        (left,) = await (await connection.execute("select now() - at as age from semcache.request_log")).fetchall()
    assert left["age"] < timedelta(days=2)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SemcacheError(Code.EMBEDDER_UNAVAILABLE, "no vector"), "embedder_unavailable: no vector"),
        (KeyError("text of a prompt"), "KeyError"),
    ],
)
async def test_a_failure_is_noted_without_what_it_may_hold(worker: Database, error: Exception, said: str) -> None:
    async def fail(_: Database) -> None:
        raise error

    assert await do(worker, task(fail)) == {"outcome": "failed", "detail": {"error": said}, "failures": 1}


async def test_a_run_that_takes_too_long_is_cut(worker: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "RENEWALS", 1000)
    cut = asyncio.Event()
    found = await do(worker, task(forever(cut), longest=0.01))
    assert found == {"outcome": "failed", "detail": {"error": "it took longer than 0.01 s"}, "failures": 1}
    assert cut.is_set()


async def test_a_lease_is_renewed_while_the_task_runs(worker: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "RENEWALS", 1000)

    async def lengthened(db: Database) -> None:
        statement = "select leased_until > started_at + interval '15.01 seconds' as longer from semcache.task"
        async with db.connection() as connection:
            while not (await connection.one(statement))["longer"]:  # noqa: ASYNC110 - the renewal tells nobody
                await asyncio.sleep(0.005)

    assert (await do(worker, task(lengthened)))["outcome"] == "done"


async def test_a_run_whose_lease_another_took_is_cut(worker: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "RENEWALS", 1000)
    cut, other = asyncio.Event(), uuid4()

    async def robbed(db: Database) -> None:
        async with db.connection() as connection:
            await connection.execute("update semcache.task set leased_until = now()")
        assert await store.claim(db, "sweep", other, 60) is None
        await forever(cut)(db)

    assert (await do(worker, task(robbed)))["outcome"] == "running"
    assert cut.is_set()


async def test_a_stopped_run_is_noted_and_due_at_once(worker: Database) -> None:
    cut, holder = asyncio.Event(), uuid4()
    made = task(forever(cut))
    await store.claim(worker, made.name, holder, 60)
    running = asyncio.create_task(run_claimed(worker, made, holder))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await stands(worker))["outcome"] == "stopped"
    assert await store.claim(worker, made.name, uuid4(), 60) is None


def forever(cut: asyncio.Event) -> Callable[[Database], Awaitable[object]]:
    """A run that only ends when it is cancelled, and then says so."""

    async def hang(_: Database) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()

    return hang


def test_the_service_counts_what_the_workers_noted(service: Service, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "insert into semcache.task (name, outcome, failures, started_at, ended_at) "
            "values ('sweep', 'failed', 2, now() - interval '3 seconds', now())"
        )
        connection.execute("""insert into semcache.task (name, detail) values ('drift', '{"tightened": 4}')""")
        connection.execute(
            "insert into semcache.task (name, outcome, detail) values "
            "('eviction', 'done', %s), ('index_care', 'done', %s)",
            (
                Jsonb({"caches": 1, "batches": 2, "evicted": 7}),
                Jsonb({"waiting": 3, "lowest_recall": 0.98, "builds": 5, "dead_rows": {"entry": 8}}),
            ),
        )
    counts = service.http.get("/metrics").text.splitlines()
    assert 'semcache_task_failures{task="sweep"} 2.0' in counts
    assert 'semcache_task_seconds{task="sweep"} 3.0' in counts
    shown = {"semcache_evictions_total 7.0", "semcache_overfull_caches 1.0", "semcache_index_recall 0.98"}
    assert shown | {"semcache_index_builds_total 5.0", 'semcache_dead_rows{table="entry"} 8.0'} <= set(counts)
    assert "semcache_tightened_caches 4.0" in counts


def test_a_killed_workers_task_is_done_by_another(database_url: str) -> None:
    """The first is killed while its purge waits for a table that we hold."""
    with psycopg.connect(database_url, autocommit=True) as connection:

        def until(statement: str) -> None:
            while connection.execute(statement).fetchone() is None:
                assert process.poll() is None

        with connection.transaction():
            connection.execute("lock table semcache.request_log in access exclusive mode")
            process = start("pgsemcache", "worker", "--database-url", database_url)
            until("select from semcache.task where name = 'purge' and outcome = 'running'")
            process.kill()
            process.communicate()
        lost = connection.execute("select holder from semcache.task where name = 'purge'").fetchone()
        connection.execute("update semcache.task set leased_until = now()")
        process = start("pgsemcache", "worker", "--database-url", database_url)
        until("select from semcache.task where name = 'purge' and outcome = 'done'")
        found = connection.execute("select holder, failures from semcache.task where name = 'purge'").fetchone()
        assert lost is not None
        assert found is not None
        assert (found[0] != lost[0], found[1]) == (True, 0)
        process.send_signal(signal.SIGTERM)
        said, complaints = process.communicate(timeout=20)
        assert (said.splitlines()[1:], complaints) == ([], "")
        assert "purge, eviction" in said
        assert process.returncode == 0
