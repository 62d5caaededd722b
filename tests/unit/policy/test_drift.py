"""When more wrong answers than usual are an alarm: how often falsely, and how late."""

from __future__ import annotations

import random

import pytest

from service.policy.drift import REFERENCE, Alarm, Label, watch


def labels(count: int, rate: float, *, seed: int, times: int = 1, weight: float = 1.0) -> list[Label]:
    """So many labels, wrong at this rate, each so many times over."""
    draw = random.Random(seed)
    drawn = [(draw.random() < rate, str((seed, i))) for i in range(count // times)]
    return [Label(wrong, cluster, weight) for wrong, cluster in drawn for _ in range(times)]


def alarms(*parts: tuple[int, float], times: int = 1, weight: float = 1.0, tolerated: float = 0.0) -> int:
    """In how many of a hundred series, each of parts with a length and a rate, there is an alarm."""
    series = [
        [
            x
            for n, (count, rate) in enumerate(parts)
            for x in labels(count, rate, seed=100 * n + s, times=times, weight=weight)
        ]
        for s in range(100)
    ]
    return sum(watch(one, tolerated=tolerated) is not None for one in series)


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.05, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("times", [1, 5])
def test_what_stays_as_it_was_is_hardly_ever_an_alarm(rate: float, times: int) -> None:
    assert alarms((REFERENCE + 2000, rate), times=times) <= 6


@pytest.mark.parametrize(
    ("before", "after", "within"), [(0.01, 0.1, 300), (0.05, 0.2, 300), (0.3, 0.6, 200), (0.6, 0.9, 150)]
)
def test_a_change_is_seen_within(before: float, after: float, within: int) -> None:
    assert alarms((REFERENCE + 200, before), (within, after)) >= 90


def test_what_becomes_better_is_no_alarm() -> None:
    assert alarms((REFERENCE + 200, 0.5), (1000, 0.05)) <= 3


def test_a_rate_that_is_tolerated_is_no_alarm() -> None:
    parts = ((REFERENCE, 0.0), (2000, 0.04))
    assert alarms(*parts) > 90
    assert alarms(*parts, tolerated=0.05) <= 3


def test_one_answer_that_is_wrong_again_and_again_is_one() -> None:
    usual = labels(REFERENCE + 100, 0.02, seed=3)
    assert watch([*usual, *[Label(True, "one")] * 100]) is None
    assert watch([*usual, *[Label(True, str(i)) for i in range(100)]]) is not None


def test_the_scale_of_weights_means_nothing() -> None:
    series = labels(REFERENCE + 200, 0.05, seed=1) + labels(300, 0.4, seed=2)
    heavy = [Label(x.wrong, x.cluster, 20.0) for x in series]
    once, again = watch(series), watch(heavy)
    assert once is not None
    assert again is not None
    assert (again.labels, again.seen, again.usual) == pytest.approx((once.labels, once.seen, once.usual))


def test_no_label_is_more_than_one_where_fewer_are_drawn_than_before() -> None:
    usual = [x for seed in range(2) for x in labels(REFERENCE, 0.05, seed=seed)]
    series = [[*usual, *labels(300, 0.05, seed=100 + seed, weight=50.0)] for seed in range(100)]
    assert sum(watch(one) is not None for one in series) <= 3
    assert watch([*usual, *labels(300, 0.3, seed=1, weight=50.0)]) is not None


def test_an_alarm_says_what_it_saw() -> None:
    found = watch([*labels(REFERENCE, 0.0, seed=1), *[Label(i % 2 == 0, str(i)) for i in range(200)]])
    assert isinstance(found, Alarm)
    assert 0 < found.usual < 0.02
    assert found.seen == pytest.approx(0.5, abs=0.2)
    assert found.labels < 30


def test_too_few_labels_say_nothing() -> None:
    assert watch([]) is None
    assert watch([Label(i > 100, str(i)) for i in range(REFERENCE)]) is None
