from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from logged import GAP, Log
from sessions import Session, key


@pytest.fixture
def log(app: Session, worker: Session) -> Log:
    return Log(app, worker)


def test_what_follows_in_a_session_is_an_edge(log: Log) -> None:
    for prompt in ("a", "b", "b", "c"):
        log.ask(prompt)
    log.ask("a", "other")
    log.ask("b", "other")
    log.ask("x", None)
    assert log.fold() == 7
    assert log.edges() == [("a", "b", 2), ("b", "c", 1)]
    assert log.nodes() == [("a", 2), ("b", 3), ("c", 1), ("x", 1)]
    starts = log.worker.rows("select power(2, starts - visits) as share from node order by visits desc, starts desc")
    assert [row["share"] > 0 for row in starts].count(True) == 1
    assert log.fold() == 0


def test_batches_add_up_to_what_one_would_have(log: Log) -> None:
    for prompt in ("a", "b", "a", "b", "c"):
        log.ask(prompt)
    assert [log.fold(limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert log.edges() == [("a", "b", 2), ("b", "a", 1), ("b", "c", 1)]
    assert log.nodes() == [("a", 2), ("b", 2), ("c", 1)]


def test_weights_halve_in_a_day(log: Log) -> None:
    log.ask("old", "one", minute=0)
    log.ask("new", "two", minute=3 * 24 * 60)
    log.ask("often", "three", minute=0)
    log.ask("often", "four", minute=24 * 60)
    log.fold()
    rows = log.worker.rows("select e.prompt, n.visits from node n join entry e using (exact_key)")
    weight = {row["prompt"]: row["visits"] for row in rows}
    assert weight["new"] - weight["old"] == pytest.approx(3)
    assert 2 ** (weight["often"] - weight["old"]) == pytest.approx(1 + 2)


def test_a_pause_ends_a_session(log: Log) -> None:
    log.ask("a", minute=0)
    log.ask("b", minute=31)
    log.ask("c", minute=61)
    log.fold()
    assert log.edges() == [("b", "c", 1)]


def test_a_row_that_comes_late_finds_its_neighbours(log: Log) -> None:
    log.ask("a", minute=0)
    log.ask("c", minute=2)
    log.fold()
    log.ask("b", minute=1)
    log.fold()
    assert log.edges() == [("a", "b", 1), ("a", "c", 1), ("b", "c", 1)]


def test_near_requests_meet_in_the_entry_that_served_them(log: Log) -> None:
    log.ask("a")
    log.ask("b")
    log.ask("b in other words", "other", serves="b")
    log.ask("c", "other")
    log.fold()
    log.ask("b once more", "third", serves="b")
    log.fold()
    assert log.edges() == [("a", "b", 1), ("b", "c", 1)]
    assert log.nodes() == [("a", 1), ("b", 3), ("c", 1)]


def test_entries_that_share_an_output_are_one_node(log: Log) -> None:
    log.ask("a")
    log.app.store("alias")
    log.app.rows("update entry set output_id = (select output_id from entry where prompt = 'a') returning 1")
    log.app.rows("update entry set created_at = created_at + interval '1 hour' where prompt = 'alias' returning 1")
    log.ask("alias", "other")
    log.ask("a", "other")
    log.fold()
    assert log.nodes() == [("a", 3)]
    assert log.edges() == []


def test_a_request_keeps_its_node_when_its_answer_is_made_anew(log: Log) -> None:
    log.ask("a")
    log.fold()
    log.app.store("a", exact_key=key("a under the next revision"))
    log.app.rows("delete from entry where exact_key = %(key)s returning 1", key=key("a"))
    log.ask("a")
    log.fold()
    assert log.nodes() == [("a", 2)]
    assert log.worker.one("select exact_key from node") == key("a under the next revision")


def test_sessions_of_one_name_in_two_caches_are_two(log: Log) -> None:
    log.ask("a")
    other = log.app.cache()
    log.ask("b", cache_id=other)
    log.fold()
    assert log.edges() == []


def test_passed_by_requests_are_no_visits(log: Log) -> None:
    log.ask("a")
    log.ask("b", outcome="bypass")
    log.ask("c", entry_id=None, request_key=None)
    log.ask("d")
    log.fold()
    assert log.edges() == [("a", "d", 1)]


def test_two_that_add_at_once_add_once(log: Log, session: Any) -> None:
    log.ask("a")
    other = session(role="semcache_worker")
    with log.worker.holding():
        assert log.fold() == 1
        other.connection.execute("set lock_timeout = '50ms'")
        with pytest.raises(Exception, match="lock timeout"):
            other.call("fold_requests", head=100, limit=100, gap=GAP)
    assert Log(log.app, other).fold() == 0
    assert log.nodes() == [("a", 1)]


def test_the_head_waits_for_those_who_write(log: Log, session: Any) -> None:
    log.ask("a")
    other = session()
    with other.holding():
        Log(other, log.worker).ask("b")
        log.worker.connection.execute("set lock_timeout = '50ms'")
        with pytest.raises(Exception, match="lock timeout"):
            log.worker.call("log_head")
    assert log.fold() == 2


def test_the_graph_stays_in_bounds_and_the_least_goes_first(log: Log) -> None:
    for number in range(6):
        for _ in range(number + 1):
            log.ask(f"prompt {number}")
    log.fold()

    def trim(nodes: int, edges: int, **more: Any) -> int:
        keep = more.get("keep", timedelta(days=30))
        return int(log.worker.call("trim_graph", nodes=nodes, edges=edges, limit=100, keep=keep))

    assert trim(nodes=6, edges=3) == 2
    assert [edge[1] for edge in log.edges()] == ["prompt 3", "prompt 4", "prompt 5"]
    assert trim(nodes=2, edges=3) == 4
    assert [node[0] for node in log.nodes()] == ["prompt 4", "prompt 5"]
    assert log.edges() == [("prompt 4", "prompt 5", 1)]
    assert trim(nodes=2, edges=3) == 0
    log.worker.rows("update node set last_at = now() - interval '31 days' returning 1")
    assert trim(nodes=2, edges=3) == 2


def test_the_graph_of_a_deleted_cache_goes(log: Log) -> None:
    log.ask("a")
    log.fold()
    log.app.call("delete_cache", tenant_id=log.app.tenant_id, cache_id=log.app.cache_id)
    assert log.worker.call("trim_graph", nodes=9, edges=9, limit=9, keep=timedelta(days=30)) == 1
