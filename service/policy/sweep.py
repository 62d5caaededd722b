"""What a cache's hit rate and false hits would have been at other thresholds, from what its log and verdicts show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from service.policy.bounds import wilson
from service.policy.decision import FLOOR

STEPS = 200  # of similarity, each 0.005
TAIL = 0.975  # of each bound: together they make an interval of 95 %


@dataclass(frozen=True, slots=True)
class Seen:
    """Requests whose nearest neighbour was this near: `step` / 200 of similarity or a little more."""

    step: int
    requests: int
    semantic_hits: int
    below_threshold: int


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts on neighbours that were this near. Drawn ones weigh the inverse of their chance; reported ones do not
    stand for the others. `squares` sums the squared weights, `wrong` the weights of the wrong."""

    step: int
    drawn: int
    weight: float
    squares: float
    wrong: float
    reported: int
    reported_wrong: int


@dataclass(frozen=True, slots=True)
class Nearest:
    """The requests of a time by the similarity of their nearest neighbour, and verdicts on such neighbours.

    `requests` and `exact_hits` count all, those without a neighbour too.
    """

    requests: int
    exact_hits: int
    seen: list[Seen]
    verdicts: list[Verdicts]


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """Had the threshold been this one. `semantic_hits` is the most that there would have been, since guards may keep
    back a neighbour that was never compared; `false_hits` is per semantic hit, with an interval of 95 %, and None
    where no drawn verdict is near enough."""

    threshold: float
    semantic_hits: int
    hit_rate: float | None
    drawn: int
    false_hits: float | None
    low: float
    high: float


def sweep(nearest: Nearest) -> list[AtThreshold]:
    """Every threshold from the floor to 1, in steps of 0.005, lowest first."""
    return list(_downwards(nearest))[::-1]


def _downwards(nearest: Nearest) -> Iterator[AtThreshold]:
    near, judged = {s.step: s for s in nearest.seen}, {v.step: v for v in nearest.verdicts}
    hits = drawn = 0
    weight = squares = wrong = 0.0
    for step in range(STEPS, round(FLOOR * STEPS) - 1, -1):
        if found := near.get(step):
            hits += found.semantic_hits + found.below_threshold
        if verdict := judged.get(step):
            drawn += verdict.drawn
            weight, squares, wrong = weight + verdict.weight, squares + verdict.squares, wrong + verdict.wrong
        independent = weight**2 / squares if squares else 0.0  # Kish: what unequal weights are worth
        low, high = wilson(wrong / weight * independent if weight else 0.0, independent, TAIL)
        yield AtThreshold(
            threshold=step / STEPS,
            semantic_hits=hits,
            hit_rate=(nearest.exact_hits + hits) / nearest.requests if nearest.requests else None,
            drawn=drawn,
            false_hits=wrong / weight if weight else None,
            low=low,
            high=high,
        )


__all__ = ["STEPS", "AtThreshold", "Nearest", "Seen", "Verdicts", "sweep"]
