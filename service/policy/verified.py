"""The rule of vCache (arXiv 2502.03771), re-derived: explore as often as the evidence for an entry demands.

An entry keeps observations (similarity, correct). From them follows how probable it is that a query at similarity s
explores: asks the model, and checks the entry. With P the probability that the answer is right, the error is at most
delta when explore + (1 - explore) P >= 1 - delta, so explore >= 1 - delta / (1 - P). For P stands a lower bound at
confidence 1 - eps, and eps is chosen to ask for least. **delta bounds wrong answers per request**, not per hit.
It differs from the paper in four points: a floor on similarity and the guards stand before the draw; the grid of eps
is spaced by logarithm, so that small budgets are not starved; where labels separate, the variance falls steadily with
their number; and observations of all entries may be pooled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt
from statistics import NormalDist

from service.policy.decision import FLOOR, Candidate, Decision, Judged, Query, Reason, conclude, judge

SEEDS = ((0.0, False), (1.0, True))
LEAST = 6  # observations with the two seeds, before a fit is trusted
_POINTS = 200
_GRID = tuple(1e-6 * (0.5 / 1e-6) ** (i / (_POINTS - 1)) for i in range(_POINTS))
_QUANTILES = tuple(NormalDist().inv_cdf(1 - eps) for eps in _GRID)
_STEP = 1e6  # a slope that is a step
_NARROWEST = 0.1  # a narrower gap between few labels is chance
_STEPS = 200
_DAMPED, _SHORTEST = 0.7, 1e-6  # full steps swing about the solution where labels nearly separate
_SETTLED = 1e-6
_SINGULAR = 1e-14


@dataclass(frozen=True, slots=True)
class Fit:
    """P(correct | s) = sigmoid(slope (s - middle)), with the variance of `middle`; n counts the seeds too."""

    slope: float
    middle: float
    variance: float
    n: int


def fit(observations: Sequence[tuple[float, bool]]) -> Fit | None:
    """The fit of (similarity, correct) labels.

    Labels that overlap are fitted by Firth's penalised likelihood. Where a gap separates wrong from right ones the
    likelihood knows no slope: a step in the middle of the gap, with the variance of a uniform place in it, less by
    `LEAST` / n. None for fewer than `LEAST` observations, the seeds included, or no settled fit: then explore.
    """
    data = [*SEEDS, *observations]
    if len(data) < LEAST:
        return None
    wrong, right = max(s for s, correct in data if not correct), min(s for s, correct in data if correct)
    if wrong < right:
        width = max(right - wrong, _NARROWEST)
        return Fit(_STEP, (wrong + right) / 2, width**2 / 12 * LEAST / len(data), len(data))
    found = _firth(data)
    if found is None:
        return None
    bias, slope, (v00, v01, v11) = found
    slope = max(slope, 1e-6)
    middle = min(max(-bias / slope, 0.0), 1.0)
    by_bias, by_slope = -1 / slope, bias / slope**2
    variance = by_bias**2 * v00 + 2 * by_bias * by_slope * v01 + by_slope**2 * v11
    return Fit(slope, middle, max(0.0, variance), len(data))


_Covariance = tuple[float, float, float]


def _firth(data: Sequence[tuple[float, bool]]) -> tuple[float, float, _Covariance] | None:
    """Bias, slope and covariance by Fisher scoring with halved steps on the penalised likelihood."""
    bias = slope = 0.0
    for _ in range(_STEPS):
        value, covariance, score = _penalised(data, bias, slope)
        if covariance is None:
            return None
        v00, v01, v11 = covariance
        step0, step1 = v00 * score[0] + v01 * score[1], v01 * score[0] + v11 * score[1]
        if abs(step0) + abs(step1) < _SETTLED:
            return bias, slope, covariance
        length = _DAMPED
        while length > _SHORTEST and _penalised(data, bias + length * step0, slope + length * step1)[0] < value:
            length /= 2
        bias, slope = bias + length * step0, slope + length * step1
    return None


def _penalised(
    data: Sequence[tuple[float, bool]], bias: float, slope: float
) -> tuple[float, _Covariance | None, tuple[float, float]]:
    """Firth's likelihood (the log-likelihood plus half the log-determinant of the information), its covariance and
    its score: y - p + h (1/2 - p), h the leverages."""
    chances = [_sigmoid(bias + slope * s) for s, _ in data]
    weights = [p * (1 - p) for p in chances]
    a = sum(weights)
    b = sum(w * s for w, (s, _) in zip(weights, data, strict=True))
    c = sum(w * s * s for w, (s, _) in zip(weights, data, strict=True))
    determinant = a * c - b * b
    if determinant < _SINGULAR:
        return -inf, None, (0.0, 0.0)
    v00, v01, v11 = c / determinant, -b / determinant, a / determinant
    value, u0, u1 = 0.5 * log(determinant), 0.0, 0.0
    for (s, correct), p, w in zip(data, chances, weights, strict=True):
        value += log(max(p if correct else 1 - p, 1e-300))
        residual = correct - p + w * (v00 + 2 * v01 * s + v11 * s * s) * (0.5 - p)
        u0, u1 = u0 + residual, u1 + residual * s
    return value, (v00, v01, v11), (u0, u1)


def exploration(fitted: Fit | None, similarity: float, delta: float) -> float:
    """The probability, 0 to 1, with which a request at this similarity must ask the model; 1 without a fit."""
    if fitted is None:
        return 1.0
    spread = sqrt(fitted.variance)
    least = 1.0
    for eps, z in zip(_GRID, _QUANTILES, strict=True):
        middle = min(max(fitted.middle + z * spread, 0.0), 1.0)
        right = (1 - eps) * _sigmoid(fitted.slope * (similarity - middle))
        least = min(least, 1 - delta / (1 - right))
    return max(0.0, least)


def decide_verified(
    query: Query,
    candidates: Sequence[Candidate],
    *,
    fits: Callable[[Candidate], Fit | None],
    delta: float,
    draw: float,
    threshold: float = FLOOR,
) -> Decision:
    """The nearest candidate that no guard holds back is served, or explored with the probability its fit demands.

    `fits` gives the fit of a candidate's entry, or the pooled one for all. `draw` is uniform in 0 to 1, made outside.
    An explored request is gray: it gets the fresh answer, and both answers make an observation.
    """
    judged: list[Judged] = []
    for candidate in candidates:
        found = judge(query, candidate, threshold=threshold)
        if found.reason is Reason.ACCEPTED:
            explore = exploration(fits(candidate), candidate.similarity, delta)
            reason = Reason.EXPLORED if draw < explore else Reason.ACCEPTED
            judged.append(replace(found, reason=reason, probability=1 - explore))
            break
        judged.append(found)
    return conclude(judged, threshold, policy="verified")


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x)) if x > -700 else 0.0


__all__ = ["LEAST", "SEEDS", "Fit", "decide_verified", "exploration", "fit"]
