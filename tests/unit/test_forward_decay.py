"""Learning how fast uses should fade: what would have hit most often."""

from __future__ import annotations

import random

from workers.forward_decay import DecayCache, best_half_life

ROOM = 20


def popular(count: int) -> list[int]:
    """The same few keys all the time, among many that come once."""
    draw = random.Random(1)
    return [draw.randrange(ROOM) if draw.random() < 0.5 else 1_000_000 + n for n in range(count)]


def fashions(count: int) -> list[int]:
    """Keys that are asked often for a while and then never again."""
    draw = random.Random(1)
    return [n // 50 * 100 + draw.randrange(ROOM) for n in range(count)]


def test_where_popularity_lasts_uses_are_long_remembered() -> None:
    assert best_half_life(popular(3000), ROOM, 1.0) >= 4


def test_where_fashions_change_they_fade_soon() -> None:
    assert best_half_life(fashions(3000), ROOM, 8.0) <= 1


def test_from_few_requests_nothing_is_learned() -> None:
    assert best_half_life(fashions(2 * ROOM - 1), ROOM, 8.0) == 8.0


def test_what_is_hardly_better_changes_nothing() -> None:
    assert best_half_life([1, 2] * 500, ROOM, 3.0) == 3.0


def test_of_many_requests_a_sample_is_tried() -> None:
    assert best_half_life(popular(60_000), ROOM, 1.0) >= 4


def test_the_least_used_gives_way_and_what_comes_back_is_remembered() -> None:
    cache = DecayCache(2, 4.0)
    assert [cache.ask(key) for key in "abaabcb"] == [False, False, True, True, True, False, False]
    assert cache.ask("b")
