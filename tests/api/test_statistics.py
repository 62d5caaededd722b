"""Figures over time: by tier and step, by similarity, and what other thresholds would have made of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import httpx
import psycopg
import pytest
from calls import Cache, assert_problem, new_cache
from graphs import lead
from running import Service

from service.errors import Code

STORED, NEAR, OTHER = "How do I rewire a lamp?", "How can I rewire a lamp?", "How do I rewire 2 lamps?"


def figures(cache: Cache, name: str, **window: int) -> dict[str, Any]:
    got = cache.http.get(f"{cache.path}/stats/{name}", params=window)
    assert got.status_code == 200, got.text
    return dict(got.json())


@pytest.fixture
def asked(http: httpx.Client) -> Cache:
    """Five searches: the same text twice, a near one, one that a guard keeps back, and one far away."""
    cache = new_cache(http, similarityThreshold=0.8)
    cache.store(STORED, "Unplug it first.")
    for prompt in (STORED, STORED, NEAR, OTHER, "Who wrote this song?"):
        cache.look(prompt)
    return cache


def test_traffic_tells_tiers_steps_and_reasons(asked: Cache) -> None:
    traffic = figures(asked, "traffic", windowMillis=60_000)
    assert {row["tier"]: row["requests"] for row in traffic["tiers"]} == {
        "exact": 1, "memory": 1, "semantic": 1, "miss": 2
    }  # fmt: skip
    for row in traffic["tiers"]:
        assert sum(step["requests"] for step in row["steps"]) == row["requests"]
        assert 0 < row["p50Ms"] <= row["p95Ms"]
    assert traffic["missReasons"] == {"below_threshold": 1, "guard_gray": 1}
    assert traffic["stepMillis"] == 1_000


def test_the_figures_of_a_cache_add_up(cache: Cache, shared_service: Service) -> None:
    outcomes = ["hit", "semantic_hit", "coalesced", "stale", "miss", "bypass", "refresh", "shadow", "error"]
    with psycopg.connect(shared_service.runtime.db.url, autocommit=True) as connection:
        connection.execute(
            "insert into semcache.request_log (at, tenant_id, cache_id, outcome, reason, latency_ms) "
            "select now(), tenant_id, cache_id, o, o, 1 from semcache.cache, "
            "unnest(%s::text[]) with ordinality u (o, n), generate_series(1, n) where name = %s",
            [outcomes, cache.name],
        )
    stats = cache.http.get(f"{cache.path}/stats").json()
    hits = ["exactHits", "semanticHits", "coalescedHits", "staleHits"]
    others = ["misses", "bypasses", "refreshes", "shadowed", "errors"]
    assert [stats[name] for name in hits + others] == list(range(1, 10))
    assert stats["hits"] == sum(stats[name] for name in hits)
    assert stats["lookups"] == stats["hits"] + sum(stats[name] for name in others)
    assert sum(stats["missReasons"].values()) == stats["lookups"] - stats["hits"] - stats["shadowed"]


def test_steps_stand_on_the_grid_that_the_answer_tells(asked: Cache) -> None:
    traffic = figures(asked, "traffic", windowMillis=120_000)
    since, until = (datetime.fromisoformat(traffic[end]).timestamp() for end in ("since", "until"))
    assert 120 <= until - since <= 122
    steps = [datetime.fromisoformat(step["step"]) for row in traffic["tiers"] for step in row["steps"]]
    assert {round((step.timestamp() - since) * 1000) % traffic["stepMillis"] for step in steps} == {0}


def test_a_window_ends_where_it_says(asked: Cache, shared_service: Service) -> None:
    figures(asked, "traffic")  # writes what is still waiting
    with psycopg.connect(shared_service.runtime.db.url, autocommit=True) as connection:
        connection.execute(
            "update semcache.request_log set at = at - interval '1 hour' where reason = 'same_request' and cache_id = "
            "(select cache_id from semcache.cache where name = %s)",
            [asked.name],
        )
    assert {row["tier"] for row in figures(asked, "traffic")["tiers"]} == {"semantic", "miss"}
    assert figures(asked, "similarity", windowMillis=60_000)["exactHits"] == 0
    assert figures(asked, "similarity")["exactHits"] == 2


def test_similarity_tells_what_was_near_and_what_a_threshold_makes_of_it(asked: Cache) -> None:
    found = figures(asked, "similarity")
    assert (found["requests"], found["exactHits"]) == (5, 2)
    assert sum(near["semanticHits"] for near in found["nearest"]) == 1
    assert sum(near["belowThreshold"] for near in found["nearest"]) == 1
    assert sum(near["requests"] for near in found["nearest"]) == 3, "the one that the guard kept back is near too"
    at = {row["threshold"]: row for row in found["thresholds"]}
    assert (at[0.8]["hitRate"], at[0.8]["semanticHits"]) == (0.6, 1)
    assert at[1.0]["hitRate"] == 0.4
    assert at[0.8]["falseHits"] is None


def test_what_callers_report_carries_no_rate(asked: Cache) -> None:
    entry = asked.listed()[0]["id"]
    asked.post("feedback", {"entryId": entry, "verdict": "correct", "prompt": NEAR})
    asked.post("feedback", {"entryId": entry, "verdict": "wrong", "prompt": OTHER})
    found = figures(asked, "similarity")
    counts = {name: found["verdicts"][name] for name in ("drawn", "reported", "reportedWrong")}
    assert counts == {"drawn": 0, "reported": 2, "reportedWrong": 1}
    assert all(row["falseHits"] is None for row in found["thresholds"])


def test_drawn_verdicts_make_a_rate_with_its_interval(asked: Cache, shared_service: Service) -> None:
    with psycopg.connect(shared_service.runtime.db.url, autocommit=True) as connection:
        connection.execute(
            "insert into semcache.observation "
            "(tenant_id, cache_id, entry_id, similarity, verdict, source, rank, signals, inclusion) "
            "select tenant_id, cache_id, gen_random_uuid(), s, v, 'exploration', 0, '{1}', 0.1 "
            "from semcache.cache, (values (0.97, 'correct'), (0.97, 'correct'), (0.96, 'wrong'), (0.70, 'wrong'), "
            "(0.99, 'stale')) as t (s, v) where name = %s",
            [asked.name],
        )
    at = {row["threshold"]: row for row in figures(asked, "similarity")["thresholds"]}
    assert at[0.95]["falseHits"] == pytest.approx(1 / 3)
    assert (at[0.95]["drawn"], at[0.965]["drawn"], at[0.7]["drawn"]) == (3, 2, 4)
    assert at[0.95]["low"] < 1 / 3 < at[0.95]["high"] < 1


@pytest.mark.parametrize("name", ["traffic", "similarity"])
def test_a_cache_that_was_never_asked_has_no_figures_and_no_fault(cache: Cache, name: str) -> None:
    found = figures(cache, name)
    assert found.get("tiers", []) == found.get("nearest", []) == []
    assert all(row["hitRate"] is None for row in found.get("thresholds", []))


@pytest.mark.parametrize("name", ["traffic", "similarity"])
@pytest.mark.parametrize("window", ["59999", "604800001", "1h", "-1"])
def test_a_window_out_of_bounds_is_refused_by_name(cache: Cache, name: str, window: str) -> None:
    got = cache.http.get(f"{cache.path}/stats/{name}", params={"windowMillis": window})
    assert_problem(got, Code.INVALID_DATA, "windowMillis")


def test_the_graph_tells_the_central_nodes_and_what_follows_what(cache: Cache, shared_service: Service) -> None:
    first, second = (cache.store(prompt, "Unplug it first.") for prompt in (STORED, OTHER))
    start, end = lead(shared_service.runtime.db.url, cache.name, STORED, OTHER)
    found = figures(cache, "graph")
    assert {row["entryId"]: (row["prompt"], row["answer"], row["score"]) for row in found["nodes"]} == {
        first: (STORED, "living", 0.75 if found["nodes"][0]["entryId"] == first else 0),
        second: (OTHER, "living", 0.75 if found["nodes"][0]["entryId"] == second else 0),
    }
    assert found["nodes"][0]["nodeId"] == end, "the central one comes first"
    assert found["nodes"][0]["timesADay"] == pytest.approx(4, abs=0.01)
    (between,) = found["edges"]
    assert (between["fromNode"], between["toNode"]) == (start, end)
    assert between["share"] == pytest.approx(0.5, abs=0.01)
    cache.http.patch(f"{cache.entries}/{found['nodes'][0]['entryId']}", json={"quarantined": True})
    (only,) = figures(cache, "graph", limit=1)["nodes"]
    assert only["answer"] == "quarantined"
    assert figures(cache, "graph", limit=1)["edges"] == []


def test_searches_of_a_session_are_edges_of_the_graph(cache: Cache, shared_service: Service) -> None:
    for prompt in (STORED, OTHER, "Who wrote this song?"):
        cache.store(prompt, "Unplug it first.")
    cache.http.post(f"{cache.entries}/search", json={"prompt": STORED}, headers={"X-Session-ID": "visit-5"})
    cache.look("Who wrote this song?")
    batch = {"searches": [{"prompt": OTHER}]}
    cache.http.post(f"{cache.entries}/batch-search", json=batch, headers={"x-session-id": "visit-5"})
    figures(cache, "traffic")  # writes what is still waiting
    with psycopg.connect(shared_service.runtime.db.url, autocommit=True) as connection:
        while connection.execute(
            "select semcache.fold_requests(semcache.log_head(), 10000, interval '30 minutes')"
        ).fetchone() != (0,):
            pass
        edges = connection.execute(
            "select f.request_key, t.request_key from semcache.transition x join semcache.cache c using (cache_id) "
            "join semcache.node f on f.node_id = from_node join semcache.node t on t.node_id = to_node "
            "where c.name = %s",
            (cache.name,),
        ).fetchall()
        asked = connection.execute(
            "select request_key, session from semcache.request_log join semcache.cache c using (cache_id) "
            "where c.name = %s order by at",
            (cache.name,),
        ).fetchall()
    assert [session for _, session in asked] == ["visit-5", None, "visit-5"]
    assert edges == [(asked[0][0], asked[2][0])]


def test_a_graph_is_its_caches_own_and_a_measure_one_of_ours(cache: Cache) -> None:
    assert figures(cache, "graph") == {"cacheId": cache.name, "nodes": [], "edges": []}
    got = cache.http.get(f"{cache.path}/stats/graph", params={"measure": "degree"})
    assert_problem(got, Code.INVALID_DATA, "measure")
