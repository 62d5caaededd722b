"""What other thresholds would have made of the same requests."""

from __future__ import annotations

import pytest

from service.policy.sweep import AtThreshold, Nearest, Seen, Verdicts, sweep

SEEN = [Seen(200, 2, 2, 0), Seen(190, 5, 4, 0), Seen(180, 10, 0, 8), Seen(100, 3, 0, 3)]


def verdicts(step: int, *, right: int, wrong: int, weight: float = 1.0) -> Verdicts:
    drawn = right + wrong
    return Verdicts(step, drawn, drawn * weight, drawn * weight**2, wrong * weight, 0, 0)


def at(threshold: float, *judged: Verdicts, seen: list[Seen] = SEEN, requests: int = 100) -> AtThreshold:
    swept = sweep(Nearest(requests, 30, seen, list(judged)))
    (found,) = (row for row in swept if row.threshold == threshold)
    return found


@pytest.mark.parametrize(("threshold", "hits"), [(1.0, 2), (0.955, 2), (0.95, 6), (0.9, 14), (0.6, 14)])
def test_what_is_near_enough_is_a_hit_and_what_a_guard_kept_back_is_none(threshold: float, hits: int) -> None:
    assert at(threshold).semantic_hits == hits
    assert at(threshold).hit_rate == (30 + hits) / 100


def test_every_threshold_from_the_floor_on_is_told_lowest_first() -> None:
    swept = [row.threshold for row in sweep(Nearest(0, 0, [], []))]
    assert (swept[0], swept[-1], len(swept), sorted(swept)) == (0.6, 1.0, 81, swept)


def test_without_requests_or_verdicts_no_rate_is_told() -> None:
    nothing = at(0.9, seen=[], requests=0)
    assert (nothing.hit_rate, nothing.false_hits, nothing.low, nothing.high) == (None, None, 0.0, 1.0)


def test_only_verdicts_on_neighbours_that_near_count() -> None:
    judged = verdicts(198, right=9, wrong=1), verdicts(181, right=5, wrong=5)
    assert (at(0.95, *judged).false_hits, at(0.95, *judged).drawn) == (0.1, 10)
    assert (at(0.9, *judged).false_hits, at(0.9, *judged).drawn) == (0.3, 20)
    assert at(1.0, *judged).false_hits is None


def test_a_rarely_drawn_verdict_weighs_more_and_widens_the_interval() -> None:
    even = at(0.9, verdicts(198, right=10, wrong=0), verdicts(190, right=5, wrong=5))
    uneven = at(0.9, verdicts(198, right=10, wrong=0, weight=10.0), verdicts(190, right=5, wrong=5))
    assert uneven.false_hits == pytest.approx(5 / 110)
    assert even.false_hits == 0.25
    assert uneven.high - uneven.low > at(0.9, verdicts(198, right=19, wrong=1)).high
