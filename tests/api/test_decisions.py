"""The policies of a cache through REST: how each decides, what it says of it, and what a caller may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from calls import Cache, assert_problem, new_cache, send
from psycopg.types.json import Jsonb
from running import Service
from sessions import Session, open_session

from service.errors import Code
from service.policy.boundary import Boundary, Budget, missing_labels
from service.policy.calibrated import Calibration
from service.policy.model import Logistic
from service.policy.signals import Signals

STORED, NEAR = "How do I reset my password?", "How can I reset my password?"
BUDGET: dict[str, Any] = {"rate": 0.01, "per": "semantic_hit", "confidence": 0.95}
SURE = {"slope": 1e6, "middle": 0.5, "variance": 0, "n": 20}
DOUBTFUL = SURE | {"middle": 0.999}


@pytest.fixture
def worker(shared_service: Service) -> Iterator[Session]:
    session = open_session(shared_service.runtime.db.url, "default", "semcache_worker")
    yield session
    session.connection.close()


def model(cut: float) -> Jsonb:
    """Its probability is one half at a similarity of 0.9."""
    weights = np.array([40.0 * (name == "similarity") for name in Signals._fields])
    fitted = Logistic(np.full(len(weights), 0.9), np.ones(len(weights)), weights, 0.0)
    return Jsonb(Calibration(Budget(), Boundary(cut, 0.002, 0.009, 500), fitted, 700).to_json())


def teach(worker: Session, cache: Cache, *, cut: float = 0.5, pooled: Any = None, fits: Any = ()) -> None:
    """Keep what a worker might have fitted, and return when the service follows it."""
    (ids,) = worker.rows(
        "select c.cache_id, e.embedder_id from cache c, embedder e where c.name = %(name)s and e.name <> 'tiny'",
        name=cache.name,
    )
    worker.call(
        "save_calibration",
        tenant_id=worker.tenant_id,
        **ids,
        model=model(cut),
        frequencies=Jsonb({"total": 0, "counts": {}}),
        pooled=Jsonb(pooled) if pooled else None,
        observations=700,
        learned=1,
        fits=Jsonb([{"entry_id": entry, "confirmed": 9, "refuted": 9} | fit for entry, fit in fits]),
    )
    assert send(cache.http, "PATCH", cache.path, {"policy": {"neighbours": 5}}).status_code == 200


def explained(cache: Cache, prompt: str = NEAR, **more: Any) -> Any:
    got = cache.post("explain", {"prompt": prompt} | more)
    assert got.status_code == 200, got.text
    return got.json()


def test_a_policy_is_shown_whole(http: httpx.Client) -> None:
    cache = new_cache(http, decision="calibrated", budget={"per": "served_hit"})
    policy = http.get(cache.path).json()["policy"]
    assert (policy["decision"], policy["budget"]) == ("calibrated", BUDGET | {"per": "served_hit"})
    assert (policy["wrongPerRequest"], policy["pooled"]) == (0.01, False)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"rate": 0.03}, {"rate": 0.03, "per": "served_hit", "confidence": 0.9}),
        ({"per": None, "rate": 0.03}, {"rate": 0.03, "per": "semantic_hit", "confidence": 0.9}),
        ({}, {"rate": 0.02, "per": "served_hit", "confidence": 0.9}),
        (None, BUDGET),
    ],
)
def test_a_change_of_a_part_of_the_budget_keeps_the_rest(http: httpx.Client, change: Any, left: dict[str, Any]) -> None:
    cache = new_cache(http, budget={"rate": 0.02, "per": "served_hit", "confidence": 0.9})
    changed = send(http, "PATCH", cache.path, {"policy": {"budget": change}})
    assert changed.json()["policy"]["budget"] == left == http.get(cache.path).json()["policy"]["budget"]


@pytest.mark.parametrize(
    ("policy", "word"),
    [
        ({"decision": "guess"}, "policy.decision"),
        ({"budget": 0.01}, "policy.budget"),
        ({"budget": {"rate": 0}}, "policy.budget.rate"),
        ({"budget": {"rate": "0.01"}}, "policy.budget.rate"),
        ({"budget": {"per": "day"}}, "policy.budget.per"),
        ({"budget": {"confidence": 1}}, "policy.budget.confidence"),
        ({"budget": {"rates": 0.1}}, "policy.budget.rates"),
        ({"wrongPerRequest": 0}, "policy.wrongPerRequest"),
        ({"wrongPerRequest": True}, "policy.wrongPerRequest"),
        ({"pooled": "yes"}, "policy.pooled"),
    ],
)
def test_what_no_policy_can_be_is_refused_by_name(http: httpx.Client, policy: Any, word: str) -> None:
    refused = send(http, "POST", "/v1/caches", {"name": "refused", "policy": policy})
    assert_problem(refused, Code.INVALID_DATA, word)


def test_without_labels_calibrated_serves_the_same_request_only_and_says_what_it_wants(http: httpx.Client) -> None:
    cache = new_cache(http, decision="calibrated")
    cache.store(STORED, "the answer")
    assert cache.responses(STORED) == ["the answer"]
    assert cache.look(NEAR)["reason"] == "uncalibrated"
    told = explained(cache)
    assert (told["decision"], told["cut"]) == ("calibrated", None)
    assert told["neighbours"][0]["obstacles"] == ["uncalibrated"]
    assert told["wouldChange"] == f"The nearest entry would take {missing_labels(Budget(), 0)}."
    assert http.get(f"{cache.path}/stats").json()["calibrations"] == []


def test_calibrated_serves_what_is_likely_enough(http: httpx.Client, worker: Session) -> None:
    cache = new_cache(http, decision="calibrated")
    entry = cache.store(STORED, "the answer")
    teach(worker, cache)
    assert cache.look(NEAR)["reason"] == "unfamiliar"
    told = explained(cache)
    assert told["neighbours"][0]["obstacles"] == ["unfamiliar"]
    assert "two near entries with the same answer" in told["wouldChange"]

    teach(worker, cache, fits=[(entry, DOUBTFUL)])
    assert cache.responses(NEAR) == ["the answer"]
    told = explained(cache)
    near = told["neighbours"][0]
    assert (told["outcome"], told["cut"], near["obstacles"]) == ("semantic_hit", 0.5, [])
    assert near["probability"] > 0.9
    assert "a cut above" in near["wouldChange"][1]

    teach(worker, cache, cut=0.9999)
    assert cache.look(NEAR)["reason"] == "unlikely"
    told = explained(cache)
    assert told["neighbours"][0]["obstacles"] == ["unlikely"]
    assert told["wouldChange"].startswith("The nearest entry would take a cut of at most 0.9")
    (shown,) = http.get(f"{cache.path}/stats").json()["calibrations"]
    assert (shown["cut"], shown["observations"], shown["falseHitsAtMost"], shown["missing"]) == (
        0.9999,
        700,
        0.009,
        None,
    )


def test_a_stricter_budget_serves_nothing_until_it_is_fitted(http: httpx.Client, worker: Session) -> None:
    cache = new_cache(http, decision="calibrated")
    entry = cache.store(STORED, "the answer")
    teach(worker, cache, fits=[(entry, DOUBTFUL)])
    for rate, served in ((0.02, True), (0.005, False)):
        send(http, "PATCH", cache.path, {"policy": {"budget": {"rate": rate}}})
        assert bool(cache.responses(NEAR)) == served


@pytest.mark.parametrize("pooled", [True, False])
def test_verified_explores_until_it_knows(http: httpx.Client, worker: Session, pooled: bool) -> None:
    # One draw in a hundred thousand would serve what is doubtful.
    cache = new_cache(http, decision="verified", pooled=pooled, wrongPerRequest=1e-5)
    entry = cache.store(STORED, "the answer")
    assert cache.look(NEAR)["reason"] == "explored"
    assert explained(cache)["neighbours"][0]["probability"] == 0
    teach(worker, cache, pooled=SURE if pooled else DOUBTFUL, fits=[(entry, DOUBTFUL if pooled else SURE)])
    assert cache.responses(NEAR) == ["the answer"]
    assert explained(cache)["neighbours"][0]["probability"] == 1
    teach(worker, cache, pooled=DOUBTFUL if pooled else SURE, fits=[(entry, SURE if pooled else DOUBTFUL)])
    assert cache.look(NEAR)["reason"] == "explored"
    assert "draw" in explained(cache)["wouldChange"]


def test_a_caller_can_only_tighten(http: httpx.Client, worker: Session) -> None:
    cache = new_cache(http, similarityThreshold=0.8)
    entry = cache.store(STORED, "the answer")
    assert cache.responses(NEAR) == ["the answer"]
    asked = cache.look(NEAR, decision="calibrated", explain=True)
    assert (asked["data"], asked["reason"], asked["explanation"]["decision"]) == ([], "uncalibrated", "calibrated")
    teach(worker, cache, fits=[(entry, DOUBTFUL)])
    assert cache.responses(NEAR, decision="calibrated") == ["the answer"]
    assert cache.look(NEAR, decision="calibrated", similarityThreshold=0.999)["reason"] == "below_threshold"
    refused = cache.post("entries/search", {"prompt": NEAR, "decision": "guess"})
    assert_problem(refused, Code.INVALID_DATA, "decision")


def test_wrong_keeps_an_entry_back_under_every_policy(http: httpx.Client, worker: Session) -> None:
    for policy in ("calibrated", "verified"):
        cache = new_cache(http, decision=policy, pooled=True)
        entry = cache.store(STORED, "the answer")
        teach(worker, cache, pooled=SURE, fits=[(entry, DOUBTFUL)])
        assert cache.responses(NEAR) == ["the answer"]
        assert cache.post("feedback", {"entryId": entry, "verdict": "wrong", "prompt": NEAR}).status_code == 202
        assert cache.look(NEAR)["data"] == []
