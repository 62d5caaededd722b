import json
import random
from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from service.policy.boundary import Budget, Outcome, Per, choose_boundary, least_observations, missing_labels
from service.policy.bounds import ClusteredRate, clustered, wilson
from service.policy.calibrated import Calibration, decide_calibrated, read_calibration
from service.policy.decision import Candidate, Query, Reason, Ruling, would_change
from service.policy.guards.features import extract
from service.policy.model import Logistic, read_model
from service.policy.signals import Frequencies, Signals, signals
from service.policy.training import Observation, calibrate, fit_calibration, train

TEXT = "How do I prune an old rose?"
NEAR = "How can I prune an old rose?"


def candidate(text, similarity, answer="a"):
    return Candidate(text, similarity, text, extract(text), answer)


def world(requests, seed):
    """Requests whose answer is right more often the larger the similarity and the margin are."""
    rng = random.Random(seed)
    found = []
    for request in range(requests):
        similarity, margin = rng.uniform(0.6, 1), rng.uniform(-0.3, 0.3)
        values = dict.fromkeys(Signals._fields, 0.0) | {"similarity": similarity, "margin": margin}
        chance = 1 / (1 + np.exp(-25 * (similarity - 0.8 + margin)))
        found.append(Observation(request, Signals(**values), rng.random() < chance, str(request)))
    return found


def test_wilson_matches_a_published_value():
    low, high = wilson(81, 263, 0.975)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson(0, 0, 0.95) == (0.0, 1.0)


def test_clusters_that_err_together_widen_the_bound():
    apart = clustered((str(i), i % 10 == 0) for i in range(500))
    together = clustered((str(i // 50), i // 50 == 0) for i in range(500))
    assert apart.rate == together.rate == 0.1
    assert apart.effective == pytest.approx(500, rel=0.05)
    assert together.effective == pytest.approx(10, rel=0.05)
    assert together.bounds(0.95)[1] > apart.bounds(0.95)[1]
    assert ClusteredRate().bounds(0.95) == (0.0, 1.0)


def test_the_boundary_is_the_lowest_cut_within_the_budget():
    outcomes = [Outcome(1 - i / 1000, i < 600 or i % 5 > 0, str(i)) for i in range(1000)]
    found = choose_boundary(outcomes, Budget(0.05))
    assert found.cut is not None
    assert found.upper <= 0.05
    taken = [o for o in outcomes if o.probability >= found.cut]
    assert found.hits == len(taken)
    assert found.rate == pytest.approx(sum(not o.correct for o in taken) / len(taken))
    assert choose_boundary(outcomes, Budget(0.1)).cut < found.cut


def test_exact_hits_widen_a_budget_per_served_hit_only():
    outcomes = [Outcome(1 - i / 1000, i < 600 or i % 5 > 0, str(i)) for i in range(1000)]
    semantic, served = Budget(0.02), Budget(0.02, Per.SERVED_HIT)
    assert choose_boundary(outcomes, semantic, exact_hits=2000) == choose_boundary(outcomes, semantic)
    assert choose_boundary(outcomes, served, exact_hits=2000).cut < choose_boundary(outcomes, served).cut


def test_a_budget_that_no_cut_keeps_says_how_far_it_is_and_how_many_labels_would_do():
    mixed = [Outcome(1 - i / 1000, i % 100 != 99, str(i)) for i in range(400)]
    missing = choose_boundary(mixed, Budget(0.015)).missing
    more = int(missing.split()[1])
    assert "wrong, which may be up to" in missing
    number = 400 + more
    alike = [replace(mixed[i * 400 // number], probability=1 - i / 1e6, cluster=str(i)) for i in range(number)]
    assert choose_boundary(alike, Budget(0.015)).cut is not None
    wrong = [Outcome(0.9, False, str(i)) for i in range(400)]
    assert "at every cut 1.50% of the hits or more were wrong" in choose_boundary(wrong, Budget(0.015)).missing


def test_no_label_at_all_is_told_from_wrong_ones():
    assert choose_boundary([], Budget(0.01)).missing == "335 more labelled requests"


def test_too_few_observations_stay_strict_and_say_what_is_missing():
    needed = least_observations(Budget(0.01))
    assert 250 < needed < 300
    few = [Outcome(0.9, True, str(i)) for i in range(100)]
    assert choose_boundary(few, Budget(0.01)).cut is None
    assert missing_labels(Budget(0.01), 0) == f"{ceil(needed * 10 / 8)} more labelled requests"
    calibration = fit_calibration(world(30, seed=1), Budget(0.01))
    assert calibration.model is None
    assert calibration.boundary.missing == missing_labels(Budget(0.01), 30)
    alike = [replace(o, correct=True) for o in world(400, seed=1)]
    assert "20 wrong" in fit_calibration(alike, Budget(0.01)).boundary.missing
    decision = decide_calibrated(
        Query(TEXT, extract(TEXT)),
        [candidate(NEAR, 0.99)],
        calibration=calibration,
        budget=Budget(),
        frequencies=Frequencies(),
    )
    assert (decision.ruling, decision.reason) == (Ruling.MISS, Reason.UNCALIBRATED)


@pytest.mark.parametrize("kind", ["trees", "logistic"])
def test_a_budget_holds_on_requests_that_were_not_seen(kind):
    pytest.importorskip("sklearn")
    calibration = calibrate(train(world(1500, seed=2), kind=kind), Budget(0.05))
    assert calibration.boundary.cut is not None
    later = world(3000, seed=3)
    chances = calibration.model.probabilities([o.signals for o in later])
    served = [o for o, p in zip(later, chances, strict=True) if p >= calibration.boundary.cut]
    assert len(served) > 600
    assert sum(not o.correct for o in served) / len(served) <= 0.05
    assert abs(chances.mean() - np.mean([o.correct for o in later])) < 0.03


@pytest.mark.parametrize("kind", ["trees", "logistic"])
def test_a_flood_of_wrong_answers_after_a_quiet_time_leaves_nothing_to_serve(kind):
    pytest.importorskip("sklearn")
    signs = Signals(**(dict.fromkeys(Signals._fields, 0.0) | {"similarity": 0.97}))
    quiet = [Observation(i, signs, True, str(i)) for i in range(800)]
    assert calibrate(train([*quiet, *world(60, seed=7)], kind=kind), Budget(0.05)).boundary.cut is not None
    flood = [Observation(i, signs, False, str(i)) for i in range(800, 1000)]
    assert calibrate(train([*quiet, *flood], kind=kind), Budget(0.05)).boundary.cut is None


def test_labels_that_were_not_drawn_at_random_do_not_license_anything():
    pytest.importorskip("sklearn")
    drawn = world(3000, seed=2)
    praised = [replace(o, weight=0.0) for o in drawn]
    assert calibrate(train(drawn, kind="logistic"), Budget(0.05)).boundary.cut is not None
    calibration = calibrate(train(praised, kind="logistic"), Budget(0.05))
    assert (calibration.boundary.cut, calibration.observations) == (None, 0)


def test_a_label_that_stands_for_many_is_still_one_observation():
    alone, for_many = ClusteredRate(), ClusteredRate()
    for i in range(200):
        alone.add(str(i), wrong=i % 50 == 0)
        for_many.add(str(i), wrong=i % 50 == 0, count=20)
    assert for_many.effective == pytest.approx(alone.effective)
    few = ClusteredRate()
    for i in range(50):
        few.add(str(i), wrong=False, count=20)
    assert few.bounds(0.95)[1] == pytest.approx(wilson(0, 50, 0.95)[1])
    few.add_right(1000)
    assert few.bounds(0.95)[1] == pytest.approx(wilson(0, 50, 0.95)[1] / 2, rel=0.05)


@pytest.mark.parametrize("kind", ["trees", "logistic"])
def test_a_calibration_survives_json(kind):
    pytest.importorskip("sklearn")
    calibration = calibrate(train(world(400, seed=4), kind=kind), Budget(0.1, Per.SERVED_HIT))
    back = read_calibration(json.loads(json.dumps(calibration.to_json())))
    rows = [o.signals for o in world(50, seed=5)]
    assert (back.budget, back.boundary) == (calibration.budget, calibration.boundary)
    assert np.allclose(back.model.probabilities(rows), calibration.model.probabilities(rows))
    assert read_calibration(calibration.to_json() | {"version": 0}) is None


def test_trees_score_as_the_library_that_grew_them():
    ensemble = pytest.importorskip("sklearn.ensemble")
    from service.policy.training import _fit_trees

    rows = world(1500, seed=6)
    x, y = np.asarray([o.signals for o in rows]), np.asarray([o.correct for o in rows])
    grown = [
        ensemble.GradientBoostingClassifier(
            n_estimators=100, learning_rate=0.1, max_depth=3, min_samples_leaf=20, subsample=0.7, max_features=0.5,
            random_state=seed,
        ).fit(x, y).decision_function(x)
        for seed in range(3)
    ]  # fmt: skip
    assert np.allclose(_fit_trees(x, y).scores(x.tolist()), np.mean(grown, axis=0), atol=1e-6)


def by_similarity():
    weights = np.zeros(len(Signals._fields))
    weights[0] = 40.0
    return Logistic(np.full(len(weights), 0.9), np.ones(len(weights)), weights, 0.0)


def calibrated(cut=0.5):
    outcome = [Outcome(cut, True, str(i)) for i in range(1000)]
    return Calibration(Budget(), choose_boundary(outcome, Budget()), by_similarity(), 1000)


def test_the_likeliest_candidate_is_served_and_explained():
    near = [candidate(NEAR, 0.95), candidate("Please, how do I prune old roses?", 0.92)]
    decision = decide_calibrated(
        Query(TEXT, extract(TEXT)), near, calibration=calibrated(), budget=Budget(), frequencies=Frequencies()
    )
    assert decision.candidate == near[0]
    first, second = decision.judged
    assert first.probability == pytest.approx(0.88, abs=0.01)
    assert would_change(first, decision) == ["a threshold above 0.9500", "a cut above 0.8808"]
    assert second.reason is Reason.OUTRANKED
    unlikely = decide_calibrated(
        Query(TEXT, extract(TEXT)),
        [candidate(NEAR, 0.88)],
        calibration=calibrated(),
        budget=Budget(),
        frequencies=Frequencies(),
    )
    assert unlikely.ruling is Ruling.GRAY
    assert unlikely.cut == 0.5
    assert would_change(unlikely.judged[0], unlikely) == ["a cut of at most 0.3100"]


def test_a_likelier_candidate_that_the_caller_bars_does_not_outrank() -> None:
    weights = np.zeros(len(Signals._fields))
    weights[0] = -40.0  # the less similar the likelier
    calibration = replace(
        calibrated(), model=Logistic(np.full(len(weights), 0.99), np.ones(len(weights)), weights, 2.0)
    )
    near = [candidate(NEAR, 0.95), candidate("How is an old rose pruned?", 0.93)]
    decision = decide_calibrated(
        Query(TEXT, extract(TEXT)),
        near,
        calibration=calibration,
        budget=Budget(),
        frequencies=Frequencies(),
        threshold=0.94,
    )
    assert [j.reason for j in decision.judged] == [Reason.ACCEPTED, Reason.BELOW_THRESHOLD]
    assert decision.candidate == near[0]
    barred = decision.judged[1]
    assert barred.fired, "a guard doubts it, which only lowers the chance"
    assert would_change(barred, decision) == ["a threshold of at most 0.9300"]


@pytest.mark.parametrize(
    ("text", "similarity", "threshold", "reason"),
    [
        (NEAR, 0.89, 0.0, Reason.UNLIKELY),
        (NEAR, 0.95, 0.96, Reason.BELOW_THRESHOLD),
        (NEAR, 1.0, 1.0, Reason.OTHER_TEXT),
        ("How do I prune an old rose without shears?", 0.99, 0.0, Reason.ACCEPTED),
        ("How do I prune a young rose?", 0.99, 0.0, Reason.GUARD_BLOCKED),
    ],
)
def test_reasons(text, similarity, threshold, reason):
    decision = decide_calibrated(
        Query(TEXT, extract(TEXT)),
        [replace(candidate(text, similarity), confirmed=1)],
        calibration=calibrated(),
        budget=Budget(),
        frequencies=Frequencies(),
        threshold=threshold,
    )
    assert decision.reason is reason


NEAREST, OTHER = candidate(NEAR, 0.99), candidate("How to water an old rose", 0.9, "b")


@pytest.mark.parametrize(
    ("near", "reason"),
    [
        ([NEAREST], Reason.UNFAMILIAR),
        ([replace(NEAREST, refuted=9)], Reason.UNFAMILIAR),
        ([NEAREST, OTHER], Reason.UNFAMILIAR),
        ([replace(NEAREST, confirmed=1)], Reason.ACCEPTED),
        ([NEAREST, replace(OTHER, confirmed=1)], Reason.ACCEPTED),
        ([NEAREST, replace(OTHER, answer="a")], Reason.ACCEPTED),
        ([candidate(NEAR, 0.88)], Reason.UNLIKELY),
    ],
)
def test_likeness_counts_where_other_words_are_known_to_ask_the_same(near, reason):
    decision = decide_calibrated(
        Query(TEXT, extract(TEXT)), near, calibration=calibrated(), budget=Budget(), frequencies=Frequencies()
    )
    assert decision.reason is reason
    if reason is Reason.UNFAMILIAR:
        assert decision.ruling is Ruling.GRAY
        (remedy,) = would_change(decision.judged[0], decision)
        assert "with the same answer" in remedy


def test_signals_see_rivals_support_and_rare_words():
    query = Query(TEXT, extract(TEXT))
    near = [candidate(NEAR, 0.95, "a"), candidate("How to water an old rose", 0.85, "b"), candidate(TEXT, 0.8, "a")]
    frequencies = Frequencies(1000, {"ros": 500, "old": 100, "prun": 2})
    first, second, third = signals(query, near, [(), (), ()], frequencies)
    assert (first.margin, first.agreement, third.behind) == (
        pytest.approx(0.1), pytest.approx(2 / 3), pytest.approx(0.15),
    )  # fmt: skip
    assert first.query_heaviest == 0
    assert second.query_heaviest == pytest.approx(np.log(1001 / 2.5))
    assert second.stored_heaviest == pytest.approx(np.log(1001 / 0.5))
    assert second.overlap < first.overlap == 1


def test_an_unknown_kind_of_model_is_refused():
    with pytest.raises(KeyError):
        read_model({"kind": "trees"})


def test_signals_see_what_labels_said_of_an_entry():
    query = Query(TEXT, extract(TEXT))
    near = [replace(candidate(NEAR, 0.95), confirmed=8), candidate(TEXT, 0.9), replace(candidate(TEXT, 0.9), refuted=2)]
    confirmed, unknown, refuted = signals(query, near, [(), (), ()], Frequencies())
    assert confirmed.trust > unknown.trust == 0.5 > refuted.trust
    assert (confirmed.confirmed, confirmed.refuted) == (pytest.approx(np.log(9)), 0)
