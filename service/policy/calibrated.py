"""The policy under a budget: serve what a fitted model finds likely enough to keep false hits within it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from service.policy.boundary import Boundary, Budget, missing_labels
from service.policy.decision import FLOOR, Candidate, Decision, Judged, Query, Reason, conclude
from service.policy.model import Model, read_model
from service.policy.signals import Frequencies, familiar, see

CALIBRATION_VERSION = 1


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
    return Calibration(
        budget=Budget(**value["budget"]),
        boundary=Boundary(**value["boundary"]),
        model=read_model(value["model"]) if value["model"] else None,
        observations=value["observations"],
    )


def decide_calibrated(
    query: Query,
    candidates: Sequence[Candidate],
    *,
    calibration: Calibration | None,
    budget: Budget,
    frequencies: Frequencies,
    threshold: float = 0.0,
) -> Decision:
    """The candidate most likely to be right is a hit if its probability reaches the calibrated cut.

    A guard that blocks is final; one in doubt is a signal. `threshold` is a bound on similarity that a caller adds.
    Where nothing near is known to be asked in other words (`familiar`), likeness may mean nothing: none is served.
    Without a calibration for the budget, or with one that cannot keep it, nothing is served: all are `uncalibrated`.
    """
    seen = see(query, candidates, frequencies)
    fitted = calibration if calibration and budget.covers(calibration.budget) else None
    cut = fitted.boundary.cut if fitted else None
    if fitted is None or fitted.model is None or cut is None:
        missing = fitted.boundary.missing if fitted else missing_labels(budget, 0)
        judged = [Judged(s.candidate, Reason.UNCALIBRATED, s.verdicts) for s in seen]
        return conclude(judged, max(threshold, FLOOR), policy="calibrated", missing=missing)
    rows = [s.signals for s in seen if s.signals is not None]
    chances = iter(fitted.model.probabilities(rows).tolist() if rows else [])
    odds = [next(chances) if s.signals is not None else None for s in seen]
    likely = Reason.ACCEPTED if familiar(rows) else Reason.UNFAMILIAR
    reasons = [
        _barred(query, s.candidate, p, cut=cut, threshold=threshold) or likely for s, p in zip(seen, odds, strict=True)
    ]
    best = max(
        (p for p, reason in zip(odds, reasons, strict=True) if p is not None and reason is Reason.ACCEPTED),
        default=None,
    )
    judged = [
        Judged(s.candidate, Reason.OUTRANKED if reason is Reason.ACCEPTED and p != best else reason, s.verdicts, p)
        for s, p, reason in zip(seen, odds, reasons, strict=True)
    ]
    return conclude(judged, max(threshold, FLOOR), policy="calibrated", cut=cut)


def _barred(query: Query, candidate: Candidate, chance: float | None, *, cut: float, threshold: float) -> Reason | None:
    """What stands against a candidate by itself."""
    if chance is None:
        return Reason.GUARD_BLOCKED
    if threshold >= 1 and candidate.text != query.text:
        return Reason.OTHER_TEXT
    if threshold < 1 and candidate.similarity < threshold:
        return Reason.BELOW_THRESHOLD
    return None if chance >= cut else Reason.UNLIKELY


__all__ = ["Calibration", "decide_calibrated", "read_calibration"]
