import pytest

from service.policy.decision import Candidate, Query, Reason, Ruling
from service.policy.guards.features import extract
from service.policy.verified import LEAST, decide_verified, exploration, fit

TEXT, NEAR, OTHER = "How do I prune a rose?", "How can I prune a rose?", "How do I prune 3 roses?"
RIGHT = [(0.95, True)] * 20
MIXED = [(s / 100, s > 84) for s in range(70, 99)] + [(0.9, False), (0.8, True)]


def decide(text, fitted, draw, similarity=0.95, query=TEXT):
    candidate = Candidate("e", similarity, text, extract(text))
    return decide_verified(Query(query, extract(query)), [candidate], fits=lambda _: fitted, delta=0.01, draw=draw)


def test_too_few_labels_always_explore():
    assert fit(RIGHT[: LEAST - 3]) is None
    assert exploration(None, 0.99, 0.01) == 1.0
    assert decide(NEAR, None, 0.999).reason is Reason.EXPLORED


def test_labels_that_agree_end_the_exploration_near_them_and_not_far_away():
    assert exploration(fit(RIGHT), 0.95, 0.01) == 0.0
    assert exploration(fit(RIGHT), 0.62, 0.01) > 0.5


@pytest.mark.parametrize("delta", [0.005, 0.01, 0.03, 0.07])
def test_exploration_falls_with_similarity_with_delta_and_with_labels(delta):
    fitted = fit(MIXED)
    curve = [exploration(fitted, s / 100, delta) for s in range(60, 101)]
    assert curve == sorted(curve, reverse=True)
    assert all(
        exploration(fitted, s / 100, delta) >= exploration(fitted, s / 100, delta + 0.01) for s in range(60, 101)
    )
    by_labels = [exploration(fit([(0.95, True)] * n), 0.95, delta) for n in range(4, 80)]
    assert by_labels == sorted(by_labels, reverse=True)


def test_the_fit_finds_the_middle_of_overlapping_labels():
    fitted = fit(MIXED)
    assert fitted is not None
    assert fitted.middle == pytest.approx(0.845, abs=0.01)
    assert fitted.slope > 10
    assert 0 < fitted.variance < 0.01


def test_errors_per_request_stay_within_delta_where_the_fit_is_true():
    fitted = fit(MIXED * 8)
    for s in range(60, 100):
        chance = 1 / (1 + 2.718281828 ** (-fitted.slope * (s / 100 - fitted.middle)))
        assert (1 - exploration(fitted, s / 100, 0.02)) * (1 - chance) <= 0.02


def test_the_draw_decides_between_serving_and_exploring():
    fitted = fit(MIXED)
    explore = exploration(fitted, 0.95, 0.01)
    assert 0 < explore < 1
    assert decide(NEAR, fitted, explore - 1e-9).ruling is Ruling.GRAY
    assert decide(NEAR, fitted, explore + 1e-9).ruling is Ruling.HIT


def test_floor_and_guards_stand_before_the_draw():
    assert decide(NEAR, fit(RIGHT), 0.99, similarity=0.5).reason is Reason.BELOW_THRESHOLD
    assert decide(OTHER, fit(RIGHT), 0.99, query="How do I prune 4 roses?").reason is Reason.GUARD_BLOCKED
