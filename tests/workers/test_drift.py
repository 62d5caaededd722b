"""Wrong answers that become more frequent make a cache stricter, and it says so; nothing makes it looser."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from labelled import labels
from psycopg.types.json import Jsonb
from sessions import Session, open_session
from stored import Cached

from service.policy.cache_policy import read_policy
from service.store import caches
from service.store.database import Database
from workers import drift
from workers.drift import Watched, tightened

SAID = {"confirmed": 7, "refuted": 0}
QUIET = Watched(caches=1, alarms=0, tightened=0)
RUNG = Watched(caches=1, alarms=1, tightened=1)


async def run(worker: Database) -> Watched:
    return await drift.run_once(worker, timedelta(days=30), 20_000)


async def decide(known: Cached, **policy: Any) -> None:
    await caches.change_policy(known.db, known.cache, policy)


async def policy(known: Cached) -> dict[str, Any]:
    return (await caches.find(known.db, known.cache.tenant_id, known.cache.name)).policy


@pytest.fixture
def app(database_url: str) -> Any:
    session = open_session(database_url, "acme", "semcache_worker")
    yield session
    session.connection.close()


def calibrate(app: Session, known: Cached) -> None:
    """Something learned, as the task calibrate leaves it."""
    fit = {"entry_id": str(known.entry_id), "slope": 20.0, "middle": 0.9, "variance": 0.01, "n": 9} | SAID
    app.call(
        "save_calibration",
        tenant_id=known.cache.tenant_id,
        cache_id=known.cache.cache_id,
        embedder_id=known.embedder_id,
        model=Jsonb({"version": 1}),
        frequencies=Jsonb({"total": 7, "counts": {}}),
        pooled=Jsonb({"slope": 20.0, "middle": 0.9, "variance": 0.01, "n": 9}),
        observations=250,
        learned=1,
        fits=Jsonb([fit]),
    )


async def test_a_threshold_rises_halfway_to_one(known: Cached, worker: Database, app: Session) -> None:
    await labels(known, 0.1)
    assert await run(worker) == QUIET
    await labels(known, 0.5)
    assert await run(worker) == RUNG
    assert await policy(known) == {"similarityThreshold": 0.975}
    (logged,) = app.rows("select cache_id, detail from semcache.audit_log where action = 'tighten'")
    assert logged["cache_id"] == known.cache.cache_id
    assert logged["detail"]["policy"] == {"similarityThreshold": 0.975}
    seen = logged["detail"]["drift"]["gray_zone"]
    assert seen["usual"] < 0.2 < seen["seen"]
    told = app.one("select count(*) from semcache.invalidation where exact_key is null")
    assert told >= 1
    assert await run(worker) == Watched(caches=1, alarms=0, tightened=1), "what was before the alarm counts no more"
    assert await policy(known) == {"similarityThreshold": 0.975}


@pytest.mark.parametrize("decision", ["calibrated", "verified"])
async def test_what_was_learned_is_thrown_away(known: Cached, worker: Database, app: Session, decision: str) -> None:
    await decide(known, decision=decision)
    calibrate(app, known)
    await labels(known, 0.0, served=True, source="audit")
    assert await run(worker) == QUIET
    await labels(known, 0.2, served=True, source="audit")
    assert await run(worker) == RUNG
    (left,) = app.rows("select model, pooled, tightened_at is not null as told from semcache.calibration")
    assert left == {"model": None, "pooled": None, "told": True}
    assert app.count("entry_fit") == 0
    assert await policy(known) == {"decision": decision}
    (logged,) = app.rows("select detail from semcache.audit_log where action = 'tighten'")
    assert "audit" in logged["detail"]["drift"]


async def test_what_the_budget_allows_is_no_alarm(known: Cached, worker: Database) -> None:
    await decide(known, decision="calibrated", budget={"rate": 0.3})
    await labels(known, 0.0, served=True, source="audit", similarity=0.75)
    await labels(known, 0.2, served=True, source="audit", similarity=0.75)
    assert await run(worker) == QUIET


async def test_only_what_was_drawn_at_random_counts(known: Cached, worker: Database) -> None:
    await labels(known, 0.0)
    await labels(known, 0.5, inclusion=None, source="feedback")
    assert await run(worker) == QUIET


@pytest.mark.parametrize("similarity", [0.8, 0.97])
async def test_what_is_outside_the_zone_says_nothing(known: Cached, worker: Database, similarity: float) -> None:
    """Far below the threshold hardly any answer is right, and above it what is seen depends on what is served."""
    await labels(known, 0.0, similarity=similarity)
    await labels(known, 0.5, similarity=similarity)
    assert await run(worker) == QUIET


@pytest.mark.parametrize(
    ("policy", "seen"), [({}, QUIET), ({"explorationRate": 0.02}, RUNG), ({"auditRate": 0.01}, RUNG)]
)
async def test_what_a_learner_leaves_says_something_only_beside_what_it_serves(
    known: Cached, worker: Database, policy: dict[str, Any], seen: Watched
) -> None:
    await decide(known, decision="calibrated", **policy)
    await labels(known, 0.0)
    await labels(known, 0.5)
    assert await run(worker) == seen


async def test_a_cache_that_is_gone_is_left_alone(known: Cached, worker: Database) -> None:
    await labels(known, 0.0)
    await labels(known, 0.5)
    await caches.delete(known.db, known.cache)
    assert (await run(worker)).alarms == 0


@pytest.mark.parametrize(("now", "then"), [(0.9, 0.95), (0.0, 0.5), (0.9999, 0.9999), (1.0, 1.0)])
def test_a_threshold_never_falls(now: float, then: float) -> None:
    assert tightened(read_policy({"similarityThreshold": now})) == {"similarityThreshold": then}
