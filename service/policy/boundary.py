"""A budget of false hits, and the cut on probabilities that keeps it on what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass as plain_dataclass
from enum import StrEnum
from math import ceil, inf
from statistics import NormalDist
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from service.policy.bounds import ClusteredRate

BLOCKS = 10  # of time, in a window of labels
LEARNED_FROM = 2  # the first blocks, which are only learned from


class Per(StrEnum):
    """What a rate of false hits is counted per."""

    SEMANTIC_HIT = "semantic_hit"
    SERVED_HIT = "served_hit"


def _within(least: float, most: float) -> BeforeValidator:
    def rule(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise ValueError(f"must be a number from {least} to {most}")
        return value

    return BeforeValidator(rule)


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Budget:
    """At most `rate` (0 to 1) of the hits of that kind wrong, as an upper bound held with `confidence`, one-sided."""

    rate: Annotated[float, _within(0.0001, 0.5), Field(description="most false hits, as a share")] = 0.01
    per: Annotated[Per, Field(description="what they are counted per")] = Per.SEMANTIC_HIT
    confidence: Annotated[float, _within(0.5, 0.999), Field(description="of the upper bound, one-sided")] = 0.95

    def covers(self, other: Budget) -> bool:
        """Whether what keeps the other budget keeps this one: semantic hits are among the served ones."""
        narrower = other.per in (self.per, Per.SEMANTIC_HIT)
        return narrower and other.rate <= self.rate and other.confidence >= self.confidence


@plain_dataclass(frozen=True, slots=True)
class Outcome:
    """A labelled request as the fitted model saw it without having learned from it: its best candidate.

    cluster: what is right or wrong together. weight: how many requests it stands for.
    """

    probability: float
    correct: bool
    cluster: str
    weight: float = 1.0


@plain_dataclass(frozen=True, slots=True)
class Boundary:
    """The least probability that is served, with what it rests on; `cut` None serves nothing by similarity.

    `rate` is the share of false hits seen at the cut among `hits` of the budget's kind, `upper` its upper bound.
    `missing` says in words what it would take to serve.
    """

    cut: float | None
    rate: float
    upper: float
    hits: int
    missing: str = ""


def choose_boundary(outcomes: Sequence[Outcome], budget: Budget, *, exact_hits: int = 0) -> Boundary:
    """The lowest cut whose upper bound of false hits keeps the budget.

    `exact_hits` are those served in the same window; they count for a budget per served hit only.
    """
    if not outcomes:
        return strict(missing_labels(budget, 0))
    seen = ClusteredRate()
    if budget.per is Per.SERVED_HIT:
        seen.add_right(exact_hits)
    best: Boundary | None = None
    nearest = _Short(inf, 0.0, 1.0, 0)
    ordered = sorted(outcomes, key=lambda o: -o.probability)
    for i, outcome in enumerate(ordered):
        seen.add(outcome.cluster, wrong=not outcome.correct, count=outcome.weight)
        if i + 1 < len(ordered) and ordered[i + 1].probability == outcome.probability:
            continue
        upper = seen.bounds(budget.confidence)[1]
        if upper <= budget.rate:
            best = Boundary(outcome.probability, seen.rate, upper, round(seen.total))
        nearest = min(nearest, _Short(_growth(seen, budget), seen.rate, upper, round(seen.total)))
    return best or strict(_falls_short(nearest, budget, len(ordered)))


class _Short(NamedTuple):
    """A cut that does not keep the budget: by which factor the labels would have to grow, and what it came to."""

    growth: float
    rate: float
    upper: float
    hits: int


def _growth(seen: ClusteredRate, budget: Budget) -> float:
    """How many times as many labels of this rate bring Wilson's bound down to the budget; inf where none do."""
    if seen.rate >= budget.rate:
        return inf
    z = NormalDist().inv_cdf(budget.confidence)
    needed = z * z * budget.rate * (1 - budget.rate) / (budget.rate - seen.rate) ** 2
    return needed / seen.effective


def _falls_short(nearest: _Short, budget: Budget, labels: int) -> str:
    if nearest.growth == inf:
        return f"better labels or another budget: at every cut {budget.rate:.2%} of the hits or more were wrong"
    more = ceil((nearest.growth - 1) * labels)
    return (
        f"some {more} more labelled requests like these: the nearest cut had {nearest.rate:.2%} of {nearest.hits} hits "
        f"wrong, which may be up to {nearest.upper:.2%} and so more than {budget.rate:.2%}"
    )


def strict(missing: str) -> Boundary:
    """A boundary that serves nothing."""
    return Boundary(None, 0.0, 1.0, 0, missing)


def missing_labels(budget: Budget, labels: int) -> str:
    """How many labelled requests a cache with so many still wants, in words; "" where it has enough."""
    needed = ceil(least_observations(budget) * BLOCKS / (BLOCKS - LEARNED_FROM)) - labels
    return f"{needed} more labelled requests" if needed > 0 else ""


def least_observations(budget: Budget) -> int:
    """How many right answers without a wrong one the bound needs to come down to the budget."""
    z = NormalDist().inv_cdf(budget.confidence)
    return ceil(z * z * (1 - budget.rate) / budget.rate)  # Wilson's upper bound of 0 of n is z² / (n + z²)


__all__ = [
    "BLOCKS",
    "LEARNED_FROM",
    "Boundary",
    "Budget",
    "Outcome",
    "Per",
    "choose_boundary",
    "least_observations",
    "missing_labels",
    "strict",
]
