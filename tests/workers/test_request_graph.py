"""The task: from the log to centralities, for graphs that have grown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from logged import Log
from sessions import open_session

from service.store import graph
from service.store.database import Database
from workers import request_graph
from workers.request_graph import Kept


@pytest.fixture
def log(database_url: str) -> Iterator[Log]:
    app, worker = open_session(database_url, "acme"), open_session(database_url, "acme", "semcache_worker")
    yield Log(app, worker)
    app.connection.close()
    worker.connection.close()


async def run(worker: Database, **bounds: Any) -> Kept:
    return await request_graph.run_once(worker, **{"nodes": 100, "edges": 100} | bounds)


def scores(log: Log, measure: str) -> dict[str, float]:
    rows = log.worker.rows(f"select prompt, {measure} as score from top_nodes")
    return {row["prompt"]: round(row["score"], 3) for row in rows}


async def test_nodes_are_scored_once_for_what_was_asked(log: Log, worker: Database) -> None:
    for session in ("one", "two"):
        for prompt in ("a", "bridge", "b"):
            log.ask(prompt, session, minute=0)
    assert await run(worker) == Kept(added=6, trimmed=0, scored=1)
    assert scores(log, "popularity") == {"a": 0.333, "bridge": 0.333, "b": 0.333}
    assert scores(log, "betweenness") == {"a": 0, "bridge": 1, "b": 0}
    assert await run(worker) == Kept(0, 0, 0)
    (edge,) = log.worker.rows("select percent, seen from top_edges where prompt = 'a'")
    assert edge == {"percent": 100, "seen": 2}


async def test_an_edge_that_was_seen_once_means_nothing(log: Log, worker: Database) -> None:
    for prompt in ("a", "bridge", "b"):
        log.ask(prompt)
    await run(worker)
    assert set(scores(log, "betweenness").values()) == {0}


async def test_the_sessions_under_way_are_seen(log: Log, worker: Database) -> None:
    for session in ("one", "two"):
        for prompt in ("a", "b", "c"):
            log.ask(prompt, session, minute=0)
    log.ask("b", "now")
    log.worker.rows("update request_log set at = now() - (session <> 'now')::int * interval '1 hour' returning 1")
    await run(worker)
    foreseen, usual = scores(log, "markov"), scores(log, "popularity")
    assert foreseen["c"] > usual["c"]
    assert foreseen["a"] < usual["a"]


async def test_the_graph_is_trimmed_to_its_bounds(log: Log, worker: Database) -> None:
    for prompt in ("a", "b", "c", "c"):
        log.ask(prompt)
    kept = await run(worker, nodes=1)
    assert (kept.trimmed, kept.scored) == (2, 1)
    assert scores(log, "popularity") == {"c": 1}


async def test_what_was_added_while_it_was_scored_is_scored_next(
    log: Log, worker: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.ask("a")
    read = graph.read

    async def read_then_grow(*arguments: Any, **options: Any) -> Any:
        rows = await read(*arguments, **options)
        monkeypatch.undo()
        log.ask("b")
        log.fold()
        return rows

    monkeypatch.setattr(graph, "read", read_then_grow)
    assert (await run(worker)).scored == 1
    assert (await run(worker)).scored == 1
    assert scores(log, "popularity") == {"a": 0.5, "b": 0.5}


async def test_it_reads_through_indexes(log: Log, worker: Database, database_url: str) -> None:
    log.ask("a")
    await run(worker)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            """
            insert into semcache.request_log
                (at, tenant_id, cache_id, session, request_key, outcome, reason, latency_ms)
            select '2020-01-01', tenant_id, cache_id, 's' || number, sha256(number::text::bytea), 'miss', 'no_entry', 1
            from semcache.cache cross join generate_series(1, 20000) number
            """
        )
        connection.execute(
            "update semcache.log_reader set position = (select max(request_log_id) from semcache.request_log)"
        )
        connection.execute("analyze semcache.request_log")
        log.ask("b")
        before = _blocks(connection)
        assert (await run(worker)).added == 1
        assert _blocks(connection) - before < 500


def _blocks(connection: psycopg.Connection[Any]) -> int:
    connection.execute("select pg_stat_force_next_flush()")
    row = connection.execute(
        "select heap_blks_read + heap_blks_hit from pg_statio_all_tables where relname = 'request_log'"
    ).fetchone()
    assert row is not None
    return int(row[0])
