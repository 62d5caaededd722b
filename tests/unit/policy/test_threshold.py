"""The static policy: where the threshold cuts, and what its ends mean."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.policy.threshold import Verdict, decide

TEXT = "When do figs ripen?"


@dataclass(frozen=True)
class Near:
    prompt: str
    similarity: float


similarities = st.lists(st.floats(0, 1), min_size=1, max_size=6).map(lambda values: sorted(values, reverse=True))


def test_nothing_near_is_a_miss() -> None:
    decision = decide(TEXT, [], 0.0)
    assert (decision.chosen, decision.nearest, decision.verdict) == (None, None, Verdict.NO_NEIGHBOUR)


@pytest.mark.parametrize(
    ("similarity", "threshold", "served"),
    [(0.96, 0.96, True), (0.9599, 0.96, False), (0.0, 0.0, True), (0.999, 0.96, True), (0.999, 1.0, False)],
)
def test_the_threshold_itself_is_near_enough(similarity: float, threshold: float, served: bool) -> None:
    near = Near("When are figs ripe?", similarity)
    decision = decide(TEXT, [near], threshold)
    assert decision.chosen == (near if served else None)
    assert decision.nearest == near


def test_at_one_only_the_same_text_is_served_whatever_the_numbers() -> None:
    twin = Near("When do FIGS ripen?", 1.0)
    same = Near("  When do figs\nripen? ", 0.9997)
    assert decide(TEXT, [twin, same], 1.0).chosen == same
    missed = decide(TEXT, [twin], 1.0)
    assert (missed.chosen, missed.verdict) == (None, Verdict.OTHER_TEXT)


@given(similarities, st.floats(0, 1), st.floats(0, 1))
def test_a_stricter_threshold_never_adds_a_hit(found: list[float], one: float, other: float) -> None:
    near = [Near("When are figs ripe?", similarity) for similarity in found]
    loose, strict = sorted((one, other))
    served = decide(TEXT, near, strict).chosen
    assert served is None or decide(TEXT, near, loose).chosen == served == near[0]
