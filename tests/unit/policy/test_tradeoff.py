"""What policies come to on labelled requests."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from service.policy.boundary import Budget, Per
from service.policy.guards.checks import Outcome
from service.policy.model import Logistic
from service.policy.report import choose_threshold, compare, keeps
from service.policy.signals import Signals
from service.policy.tradeoff import Labelled, Near, Sample, by_exploration, by_probability, by_similarity, point
from service.policy.verified import Fit, exploration


def near(similarity: float, *, correct: bool = True, guarded: Outcome = Outcome.PASS, cluster: str = "a") -> Near:
    signals = Signals(similarity, *[0.0] * (len(Signals._fields) - 1))
    return Near(similarity, guarded, correct, cluster, None if guarded is Outcome.BLOCK else signals)


def sample(*requests: Labelled, total: int = 10, exact: int = 4) -> Sample:
    return Sample(requests, total, exact)


def test_a_threshold_serves_the_first_candidate_that_no_guard_doubts() -> None:
    of_one = Labelled((near(0.97, guarded=Outcome.BLOCK), near(0.95, guarded=Outcome.GRAY), near(0.9)), weight=2)
    assert [(o.probability, o.weight) for o in by_similarity(sample(of_one), guards=True)] == [(0.9, 2)]
    assert [o.probability for o in by_similarity(sample(of_one), guards=False)] == [0.97]
    assert by_similarity(sample(Labelled((near(0.5),)), Labelled(())), guards=False) == []


def test_a_point_counts_hits_by_their_weight_and_exact_ones_as_right() -> None:
    requests = (
        Labelled((near(0.95, cluster="a"),), weight=2),
        Labelled((near(0.9, correct=False, cluster="b"),)),
        Labelled((near(0.7, correct=False, cluster="c"),)),
    )
    found = point(sample(*requests), by_similarity(sample(*requests), guards=True), 0.9)
    assert (found.hit_rate, found.semantic_hits) == (0.7, 3)
    assert found.false_per_semantic_hit.rate == pytest.approx(1 / 3)
    assert found.false_per_served_hit.rate == pytest.approx(1 / 7)
    assert found.false_per(Per.SERVED_HIT) == found.false_per_served_hit
    for share in (found.false_per_semantic_hit, found.false_per_served_hit):
        assert 0 <= share.low < share.rate < share.high <= 1


def test_what_is_wrong_together_widens_the_interval() -> None:
    together, apart = (
        sample(*(Labelled((near(0.9, correct=i % 4 > 0, cluster=cluster(i)),)) for i in range(200)))
        for cluster in (lambda i: str(i % 4), str)
    )
    shares = [point(s, by_similarity(s, guards=True), 0.9).false_per_semantic_hit for s in (together, apart)]
    assert shares[0].rate == shares[1].rate == 0.25
    assert shares[0].high > shares[1].high + 0.1


def test_a_model_serves_the_likeliest_candidate() -> None:
    width = len(Signals._fields)
    model = Logistic(np.zeros(width), np.ones(width), np.array([-10.0] + [0.0] * (width - 1)), 9.0)
    found = by_probability(
        sample(Labelled((near(0.99), near(0.8, correct=False), near(0.7, guarded=Outcome.BLOCK)))), model
    )
    assert [(round(o.probability, 2), o.correct) for o in found] == [(0.73, False)]
    assert by_probability(sample(Labelled((near(0.9, guarded=Outcome.BLOCK),))), model) == []


def test_what_explores_is_served_less_often() -> None:
    fit = Fit(slope=40, middle=0.8, variance=0.0001, n=50)
    (found,) = by_exploration(sample(Labelled((near(0.9),), weight=3)), fit, 0.02)
    assert found.weight == pytest.approx(3 * (1 - exploration(fit, 0.9, 0.02)))
    assert 0 < found.weight < 3
    assert by_exploration(sample(Labelled((near(0.9),))), None, 0.02) == []


def many(right: int, wrong: int, *, at: float = 0.9, below: float = 0.8, exact: int = 0) -> Sample:
    """Right and wrong ones well mixed, since what is learned is learned in the order of time."""
    requests = [Labelled((near(at, cluster=f"r{i}"),)) for i in range(right)]
    requests += [Labelled((near(below, correct=False, cluster=f"w{i}"),)) for i in range(wrong)]
    random.Random(0).shuffle(requests)
    return sample(*requests, total=1000, exact=exact)


def test_the_least_threshold_that_keeps_the_budget_is_chosen() -> None:
    choice = choose_threshold(many(400, 50), many(400, 50), Budget(0.01), guards=True)
    assert choice.policy == {"decision": "threshold", "similarityThreshold": 0.9, "guards": True}
    assert choice.shown is not None
    assert (choice.shown.hit_rate, choice.shown.false_per_semantic_hit.rate) == (0.4, 0)
    assert keeps(choice, Budget(0.01))


def test_a_few_labels_far_below_the_others_do_not_move_the_threshold_there() -> None:
    few_below = sample(*many(400, 0).labelled, *([Labelled((near(0.61),))] * 3))
    choice = choose_threshold(few_below, few_below, Budget(0.01), guards=True)
    assert choice.policy is not None
    assert choice.policy["similarityThreshold"] == 0.9


def test_exact_hits_help_a_budget_of_served_hits_alone() -> None:
    few = many(50, 20, exact=800)
    assert choose_threshold(few, few, Budget(0.01), guards=True).policy is None
    assert "more labelled requests" in choose_threshold(few, few, Budget(0.01), guards=True).missing
    assert choose_threshold(few, few, Budget(0.01, Per.SERVED_HIT), guards=True).policy is not None


def test_what_breaks_on_the_later_half_is_not_kept() -> None:
    choice = choose_threshold(many(400, 50), many(400, 50, below=0.95), Budget(0.01), guards=False)
    assert choice.policy is not None
    assert not keeps(choice, Budget(0.01))


def test_every_policy_is_compared() -> None:
    rows = compare(many(1200, 180), many(400, 60), Budget(0.01))
    found = Counter(row.policy for row in rows)
    assert found == {"threshold": 10, "threshold without guards": 10, "calibrated": 3, "verified": 3}
    calibrated = [row.point for row in rows if row.policy == "calibrated"]
    assert all(p is not None and p.semantic_hits == 400 and p.false_per_semantic_hit.rate == 0 for p in calibrated)
