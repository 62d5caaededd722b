"""Policies side by side on labelled requests: chosen and fitted on the earlier half of them, shown on the later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import floor
from typing import Any, Literal

from service.policy.boundary import Budget, choose_boundary, least_observations
from service.policy.tradeoff import (
    Point,
    Sample,
    by_exploration,
    by_probability,
    by_similarity,
    point,
    to_train_on,
)
from service.policy.training import Trained, calibrate, train
from service.policy.verified import fit

THRESHOLDS = tuple(round(0.98 - 0.02 * step, 2) for step in range(10))
RATES = (0.01, 0.03, 0.05)

Name = Literal["threshold", "threshold without guards", "calibrated", "verified"]


@dataclass(frozen=True, slots=True)
class Row:
    """One policy at one setting: a threshold, a budget's rate, or the wrong answers per request that `verified` takes.

    `point` is None where it would have served nothing by similarity, `missing` then says why.
    """

    policy: Name
    setting: float
    point: Point | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """What keeps a budget: the keys of a cache's policy, and what they came to on the later half.

    `policy` is None where nothing kept it; `missing` then says what it would take.
    """

    policy: dict[str, Any] | None
    shown: Point | None
    missing: str = ""


def compare(earlier: Sample, later: Sample, budget: Budget) -> list[Row]:
    """Thresholds with and without guards, `calibrated` at several rates of the budget's kind, `verified` pooled."""
    guarded, plain = (by_similarity(later, guards=guards) for guards in (True, False))
    rows = [Row("threshold", t, point(later, guarded, t)) for t in THRESHOLDS]
    rows += [Row("threshold without guards", t, point(later, plain, t)) for t in THRESHOLDS]
    trained = train(to_train_on(earlier))
    rows += [calibrated(trained, earlier, later, Budget(rate, budget.per, budget.confidence)) for rate in RATES]
    pooled = fit([(o.probability, o.correct) for o in by_similarity(earlier, guards=True)])
    return rows + [Row("verified", delta, point(later, by_exploration(later, pooled, delta), 0.0)) for delta in RATES]


def calibrated(trained: Trained, earlier: Sample, later: Sample, budget: Budget) -> Row:
    """What a model that was trained on the earlier half would serve of the later one."""
    found = calibrate(trained, budget, exact_hits=earlier.exact_hits)
    cut = found.boundary.cut
    if found.model is None or cut is None:
        return Row("calibrated", budget.rate, None, found.boundary.missing)
    return Row("calibrated", budget.rate, point(later, by_probability(later, found.model), cut))


def choose_threshold(earlier: Sample, later: Sample, budget: Budget, *, guards: bool) -> Choice:
    """The least threshold that labels support and whose bound of false hits keeps the budget on the earlier half.

    A few labels far below the others do not move it down, since they say little of what lies there: the least similar
    hits are left out, as many as it takes to bound their own false hits to ten times the budget.
    """
    outcomes = by_similarity(earlier, guards=guards)
    boundary = choose_boundary(outcomes, budget, exact_hits=earlier.exact_hits)
    if boundary.cut is not None:
        least = _supported([o.probability for o in outcomes if o.probability >= boundary.cut], budget)
        supported = [o for o in outcomes if o.probability >= least]
        boundary = choose_boundary(supported, budget, exact_hits=earlier.exact_hits)
    if boundary.cut is None:
        return Choice(None, None, boundary.missing)
    threshold = floor(boundary.cut * 10_000) / 10_000
    policy = {"decision": "threshold", "similarityThreshold": threshold, "guards": guards}
    return Choice(policy, point(later, by_similarity(later, guards=guards), threshold))


def _supported(similarities: Sequence[float], budget: Budget) -> float:
    """The similarity up to which enough of these labels lie to bound anything."""
    few = least_observations(Budget(min(0.5, 10 * budget.rate), budget.per, budget.confidence))
    return sorted(similarities)[min(few, len(similarities)) - 1]


def choose_calibrated(earlier: Sample, later: Sample, budget: Budget) -> Choice:
    """The policy `calibrated` under this budget: the worker finds its cut anew as labels come."""
    row = calibrated(train(to_train_on(earlier)), earlier, later, budget)
    if row.point is None:
        return Choice(None, None, row.missing)
    return Choice({"decision": "calibrated", "budget": asdict(budget)}, row.point)


def keeps(choice: Choice, budget: Budget) -> bool:
    """Whether the later half too stayed within the budget's rate."""
    return choice.shown is not None and choice.shown.false_per(budget.per).rate <= budget.rate


def settings_of(rows: Sequence[Row], policy: Name) -> list[Row]:
    """The rows of one policy that serve something."""
    return [row for row in rows if row.policy == policy and row.point is not None]


__all__ = [
    "Choice",
    "Name",
    "Row",
    "calibrated",
    "choose_calibrated",
    "choose_threshold",
    "compare",
    "keeps",
    "settings_of",
]
