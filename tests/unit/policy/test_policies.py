"""Which policy decides, and what a caller may ask for beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.policy.boundary import Boundary, Budget, Per
from service.policy.cache_policy import read_policy
from service.policy.calibrated import Calibration
from service.policy.decision import FLOOR, Candidate, Policy, Query, Reason, Ruling
from service.policy.guards.features import extract
from service.policy.model import Logistic
from service.policy.policies import NOTHING_LEARNED, Decider, Learned
from service.policy.signals import Signals
from service.policy.verified import Fit

TEXT = "How do I prune an old rose?"
NEAR = "How can I prune an old rose?"
POLITE = "Please, how do I prune old roses?"
SURE = Fit(slope=1e6, middle=0.5, variance=0.0, n=100)


def near(text: str = NEAR, similarity: float = 0.97, answer: str = "a") -> Candidate:
    return Candidate(text, similarity, text, extract(text), answer, confirmed=1)


def likelier(signal: str, budget: Budget | None = None) -> Calibration:
    """A model whose probability grows with one signal alone; everything above one half is served."""
    weights = np.array([20.0 * (name == signal) for name in Signals._fields])
    model = Logistic(np.full(len(weights), 0.9), np.ones(len(weights)), weights, 0.0)
    return Calibration(budget or Budget(), Boundary(0.5, 0.0, 0.01, 400), model, 400)


def decider(decision: Policy, learned: Learned = NOTHING_LEARNED, **changes: object) -> Decider:
    keys = {"decision": decision} | changes
    return Decider(read_policy(keys), learned, fits=lambda _: None, draw=0.5)


QUERY = Query(TEXT, extract(TEXT))
CALIBRATED = Learned(likelier("similarity"))


def test_each_policy_decides_by_what_is_its_own() -> None:
    assert decider("threshold").decide(QUERY, [near()]).policy == "threshold"
    assert decider("calibrated", CALIBRATED).decide(QUERY, [near()]).ruling is Ruling.HIT
    pooled = decider("verified", Learned(pooled=SURE), pooled=True).decide(QUERY, [near()])
    assert (pooled.ruling, pooled.policy) == (Ruling.HIT, "verified")
    alone = decider("verified", Learned(pooled=SURE))
    assert alone.decide(QUERY, [near()]).reason is Reason.EXPLORED, "this entry has no fit of its own"
    assert replace(alone, fits=lambda _: SURE).decide(QUERY, [near()]).ruling is Ruling.HIT


def test_the_threshold_of_the_policy_counts_for_that_policy_alone() -> None:
    assert decider("threshold").decide(QUERY, [near(similarity=0.93)]).reason is Reason.BELOW_THRESHOLD
    learned = decider("calibrated", CALIBRATED)
    assert learned.decide(QUERY, [near(similarity=0.93)]).threshold == FLOOR
    assert replace(learned, threshold=0.95).decide(QUERY, [near(similarity=0.93)]).reason is Reason.BELOW_THRESHOLD


@pytest.mark.parametrize("own", ["threshold", "calibrated", "verified"])
@pytest.mark.parametrize("asked", ["threshold", "calibrated", "verified"])
@pytest.mark.parametrize("learned", [NOTHING_LEARNED, Learned(likelier("similarity"), pooled=SURE)])
@pytest.mark.parametrize("similarity", [0.7, 0.93, 0.99])
def test_asking_for_a_policy_only_tightens(own: Policy, asked: Policy, learned: Learned, similarity: float) -> None:
    mine, others = decider(own, learned), decider(asked, learned)
    both = mine.decide(QUERY, [near(similarity=similarity)], asked).ruling is Ruling.HIT
    alone = [j.decide(QUERY, [near(similarity=similarity)]).ruling is Ruling.HIT for j in (mine, others)]
    assert both == all(alone)


def test_policies_that_choose_other_answers_dispute() -> None:
    learned = decider("threshold", Learned(likelier("rank")), similarityThreshold=0.9)
    rivals = [near(NEAR, 0.98, "a"), near(POLITE, 0.97, "b")]
    disputed = learned.decide(QUERY, rivals, "calibrated")
    assert (disputed.ruling, disputed.reason) == (Ruling.MISS, Reason.DISPUTED)
    assert disputed.judged[1].reason is Reason.DISPUTED
    agreed = [near(NEAR, 0.98, "a"), near(POLITE, 0.97, "a")]
    assert learned.decide(QUERY, agreed, "calibrated").ruling is Ruling.HIT


@pytest.mark.parametrize(
    ("fitted", "serves"),
    [
        (Budget(0.01), True),
        (Budget(0.005, confidence=0.99), True),
        (Budget(0.02), False),
        (Budget(0.01, confidence=0.9), False),
        (Budget(0.01, Per.SERVED_HIT), False),
    ],
)
def test_a_calibration_for_a_looser_budget_serves_nothing(fitted: Budget, serves: bool) -> None:
    decision = decider("calibrated", Learned(likelier("similarity", fitted))).decide(QUERY, [near()])
    assert (decision.ruling is Ruling.HIT) == serves
    assert serves or decision.missing == "335 more labelled requests"


def test_a_budget_per_served_hit_is_kept_by_what_keeps_it_per_semantic_hit() -> None:
    assert Budget(0.01, Per.SERVED_HIT).covers(Budget(0.01))
    assert not Budget(0.01).covers(Budget(0.01, Per.SERVED_HIT))
