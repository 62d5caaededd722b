"""The doctor's rules: what each finds wrong, and that a healthy installation passes all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.commands.checks import (
    Finding,
    judge_disk,
    judge_engine,
    judge_policy,
    judge_schema,
    judge_server,
    judge_traffic,
)
from service.policy.cache_policy import read_policy
from service.policy.needs import unmet
from service.settings import Settings
from service.store.facts import ServerFacts, TrafficFacts
from service.store.migrate import State

NOW = 1_900_000_000.0
HEALTHY = ServerFacts(
    version=180001,
    version_text="18.1",
    pgvector="0.8.5",
    clock=NOW + 0.1,
    in_recovery=False,
    fsync=True,
    full_page_writes=True,
    autovacuum=True,
    max_connections=100,
    connections=12,
    shared_buffers=2**30,
    vector_bytes=2**28,
    replay_lag=0.0,
    invalid_indexes=[],
    bloated_tables=[],
)
BUSY = TrafficFacts(
    requests=1_000,
    p99_ms={"l1": 0.4, "semantic": 40.0},
    slowest_stage="embed",
    ended=20.0,
    failing_tasks=[],
    overgrown_indexes=0,
)


def wrong(findings: list[Finding]) -> list[tuple[str, str]]:
    assert all(bool(finding.mend) == (finding.level != "ok") for finding in findings), "what is wrong has a mend"
    return [(finding.level, finding.what) for finding in findings if finding.level != "ok"]


def test_a_healthy_server_passes() -> None:
    assert wrong(list(judge_server(HEALTHY, Settings(), NOW))) == []
    assert wrong(list(judge_traffic(BUSY))) == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"version": 150004}, ("FAIL", "postgres")),
        ({"pgvector": None}, ("FAIL", "postgres")),
        ({"pgvector": "0.8.3"}, ("FAIL", "postgres")),
        ({"in_recovery": True}, ("FAIL", "postgres")),
        ({"fsync": False}, ("FAIL", "durability")),
        ({"full_page_writes": False}, ("FAIL", "durability")),
        ({"autovacuum": False}, ("FAIL", "autovacuum")),
        ({"clock": NOW - 60}, ("warn", "clock")),
        ({"connections": 95}, ("warn", "connections")),
        ({"vector_bytes": 2**32}, ("warn", "memory")),
        ({"invalid_indexes": ["entry_tags"]}, ("warn", "indexes")),
        ({"bloated_tables": ["entry"]}, ("warn", "dead rows")),
        ({"replay_lag": 60.0}, ("warn", "replication")),
    ],
)
def test_a_server_that_is_not_well(changes: dict[str, Any], found: tuple[str, str]) -> None:
    assert wrong(list(judge_server(replace(HEALTHY, **changes), Settings(), NOW))) == [found]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"p99_ms": {"exact": 700.0}}, "latency"),
        ({"ended": None}, "worker"),
        ({"ended": 3_600.0}, "worker"),
        ({"failing_tasks": ["purge"]}, "worker"),
        ({"overgrown_indexes": 2}, "vector indexes"),
    ],
)
def test_traffic_that_is_not_well(changes: dict[str, Any], found: str) -> None:
    assert wrong(list(judge_traffic(replace(BUSY, **changes)))) == [("warn", found)]


@pytest.mark.parametrize(
    ("state", "difference", "level"),
    [
        (State("0009", "0009", ()), None, "ok"),
        (State("0009", "0009", ()), "add_column by_hand", "FAIL"),
        (State("0008", "0009", ()), None, "FAIL"),
        (State("0009", "0009", ("views/overview.sql",)), None, "FAIL"),
        (State(None, "0009", ()), None, "FAIL"),
    ],
)
def test_a_schema(state: State, difference: str | None, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.store.migrate._revisions", lambda: {"0008", "0009"})
    assert [finding.level for finding in judge_schema(state, difference)] == [level]


@pytest.mark.parametrize(("free", "level"), [(10 * 2**30, "ok"), (2**30, "warn"), (2**20, "FAIL")])
def test_a_disk(free: int, level: str) -> None:
    assert judge_disk("disk", free).level == level


@pytest.mark.parametrize(("busy", "findings"), [(None, 0), (0.5, 0), (0.71, 1)])
def test_an_engine(busy: float | None, findings: int) -> None:
    assert len(list(judge_engine("small-chat", busy))) == findings


def test_a_policy_that_asks_for_what_is_not_set_up_is_named() -> None:
    policy = read_policy({"secondStage": "cross_encoder", "context": "rewritten"})
    lacking = unmet(policy, Settings())
    assert wrong(list(judge_policy("default", "faq", lacking))) == [("warn", "cache faq of default")] * 2
    there = Settings(cross_encoder="m", resolver_url="http://r.example/v1", resolver_model="m")
    assert wrong(list(judge_policy("default", "faq", unmet(policy, there)))) == []
