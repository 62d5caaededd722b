"""The policy under a budget: serve what a fitted model finds likely enough to keep false hits within it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from service.policy.bounds import ClusteredRate
from service.policy.decision import FLOOR, Candidate, Decision, Judged, Query, Reason, conclude
from service.policy.guards.checks import check
from service.policy.model import Model, read_model
from service.policy.signals import Frequencies, signals

CALIBRATION_VERSION = 1


class Per(StrEnum):
    """What a rate of false hits is counted per."""

    SEMANTIC_HIT = "semantic_hit"
    SERVED_HIT = "served_hit"


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `rate` (0 to 1) of the hits of that kind wrong, as an upper bound held with `confidence`, one-sided."""

    rate: float = 0.01
    per: Per = Per.SEMANTIC_HIT
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Outcome:
    """A labelled request as the fitted model saw it without having learned from it: its best candidate."""

    probability: float
    correct: bool
    cluster: str


@dataclass(frozen=True, slots=True)
class Boundary:
    """The least probability that is served, with what it rests on; `cut` None serves nothing by similarity.

    `rate` is the share of false hits seen at the cut among `hits` of the budget's kind, `upper` its upper bound.
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
    seen = ClusteredRate()
    if budget.per is Per.SERVED_HIT:
        for i in range(exact_hits):
            seen.add(f"exact {i}", wrong=False)
    best: Boundary | None = None
    ordered = sorted(outcomes, key=lambda o: -o.probability)
    for i, outcome in enumerate(ordered):
        seen.add(outcome.cluster, wrong=not outcome.correct)
        tied = i + 1 < len(ordered) and ordered[i + 1].probability == outcome.probability
        upper = seen.bounds(budget.confidence)[1]
        if not tied and upper <= budget.rate:
            best = Boundary(outcome.probability, seen.rate, upper, int(seen.total))
    return best or _strict(outcomes, budget)


def _strict(outcomes: Sequence[Outcome], budget: Budget) -> Boundary:
    needed = least_observations(budget)
    missing = (
        f"{needed - len(outcomes)} more labelled requests"
        if len(outcomes) < needed
        else "a cut at which the bound on false hits keeps the budget"
    )
    return Boundary(None, 0.0, 1.0, 0, missing)


def least_observations(budget: Budget) -> int:
    """How many right answers without a wrong one the bound needs to come down to the budget."""
    count = 1
    while ClusteredRate(0, count).bounds(budget.confidence)[1] > budget.rate:
        count *= 2
    low = count // 2
    while count - low > 1:
        middle = (count + low) // 2
        enough = ClusteredRate(0, middle).bounds(budget.confidence)[1] <= budget.rate
        low, count = (low, middle) if enough else (middle, count)
    return count


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a worker fits for one cache and embedder, kept as JSON."""

    budget: Budget
    boundary: Boundary
    model: Model | None
    observations: int

    def to_json(self) -> dict[str, Any]:
        return {
            "version": CALIBRATION_VERSION,
            "budget": asdict(self.budget),
            "boundary": asdict(self.boundary),
            "model": self.model.to_json() if self.model else None,
            "observations": self.observations,
        }


def read_calibration(value: dict[str, Any]) -> Calibration | None:
    """The calibration that `to_json` wrote; None where another version did, so that it is fitted anew."""
    if value.get("version") != CALIBRATION_VERSION:
        return None
    budget = value["budget"]
    return Calibration(
        budget=Budget(budget["rate"], Per(budget["per"]), budget["confidence"]),
        boundary=Boundary(**value["boundary"]),
        model=read_model(value["model"]) if value["model"] else None,
        observations=value["observations"],
    )


def decide_calibrated(
    query: Query,
    candidates: Sequence[Candidate],
    *,
    calibration: Calibration | None,
    frequencies: Frequencies,
    threshold: float = 0.0,
) -> Decision:
    """The candidate most likely to be right is a hit if its probability reaches the calibrated cut.

    A guard that blocks is final; one in doubt is a signal. `threshold` is a bound on similarity that a caller adds.
    Without a calibration, or with none that keeps the budget, nothing is served: every candidate is `uncalibrated`.
    """
    bound = max(threshold, FLOOR)
    near = [c for c in candidates if c.similarity >= FLOOR]
    verdicts = [tuple(check(query.features, c.features)) for c in near]
    cut = calibration.boundary.cut if calibration else None
    if calibration is None or calibration.model is None or cut is None:
        judged = [Judged(c, Reason.UNCALIBRATED, v) for c, v in zip(near, verdicts, strict=True)]
        return conclude(judged, bound)
    found = signals(query, near, verdicts, frequencies)
    rows = [row for row in found if row is not None]
    chances = iter(calibration.model.probabilities(rows).tolist() if rows else [])
    odds = [next(chances) if row is not None else None for row in found]
    best = max((p for p in odds if p is not None), default=None)
    judged = [
        Judged(c, _reason(query, c, p, best=best, cut=cut, threshold=threshold), v, p)
        for c, v, p in zip(near, verdicts, odds, strict=True)
    ]
    return conclude(judged, bound, cut)


def _reason(
    query: Query, candidate: Candidate, chance: float | None, *, best: float | None, cut: float, threshold: float
) -> Reason:
    if chance is None:
        return Reason.GUARD_BLOCKED
    if threshold >= 1 and candidate.text != query.text:
        return Reason.OTHER_TEXT
    if threshold < 1 and candidate.similarity < threshold:
        return Reason.BELOW_THRESHOLD
    if chance < cut:
        return Reason.UNLIKELY
    return Reason.ACCEPTED if chance == best else Reason.OUTRANKED


__all__ = [
    "Boundary",
    "Budget",
    "Calibration",
    "Outcome",
    "Per",
    "choose_boundary",
    "decide_calibrated",
    "least_observations",
    "read_calibration",
]
