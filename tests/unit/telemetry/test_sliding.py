"""A share that forgets."""

from __future__ import annotations

from math import isnan

import pytest

from service.telemetry.sliding import SlidingShare


def test_nothing_has_no_share() -> None:
    assert isnan(SlidingShare(300).share(0))


def test_only_the_window_counts() -> None:
    share = SlidingShare(300)
    for second in range(100):
        share.add(second, part=True)
    for second in range(250, 350):
        share.add(second, part=False)
    assert share.share(349) == pytest.approx(50 / 150)
    assert isnan(share.share(1_000))


def test_it_keeps_steps_and_not_events() -> None:
    share = SlidingShare(300)
    for n in range(100_000):
        share.add(n / 100, part=n % 4 == 0)
    assert share.share(1_000) == pytest.approx(0.25, abs=0.001)
    assert len(share._counts) <= 31
