"""How long a request waits for the cache."""

import pytest

from service.cache.patience import AT_FIRST, FEW, WINDOW, Patience


def test_it_is_a_guess_at_first_and_then_what_lookups_took_and_a_little_more():
    patience = Patience(0.05, longest=2.0)
    for _ in range(FEW):
        assert patience.seconds == AT_FIRST + 0.05
        patience.took(0.02)
    assert patience.seconds == pytest.approx(0.07)
    patience.took(0.3)  # a lookup that ended too late counts too
    assert patience.seconds == pytest.approx(0.35)
    for _ in range(WINDOW):
        patience.took(0.01)
    assert patience.seconds == pytest.approx(0.06)


def test_a_first_lookup_that_is_slow_is_waited_for_the_next_time():
    patience = Patience(0.05, longest=2.0)
    patience.took(1.3)
    assert patience.seconds == pytest.approx(1.35)


def test_it_is_never_longer_than_the_database_may_take():
    patience = Patience(0.05, longest=2.0)
    for _ in range(FEW):
        patience.took(30)
    assert patience.seconds == pytest.approx(2.05)
