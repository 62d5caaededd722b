"""Which near entry is in doubt: refused by the policy, by no guard, and near enough for a second look."""

from __future__ import annotations

from service.policy.decision import Decision, Judged, Reason, Ruling
from service.policy.guards.checks import Outcome

_OPEN = frozenset({Reason.GUARD_GRAY, Reason.UNLIKELY, Reason.UNFAMILIAR, Reason.BELOW_THRESHOLD, Reason.UNCALIBRATED})


def in_doubt(decision: Decision, least: float) -> Judged | None:
    """The nearest entry of at least this cosine (0 to 1) that a second look may accept; none beside a hit."""
    if decision.ruling is Ruling.HIT or decision.threshold >= 1:
        return None
    return next((j for j in decision.judged if j.candidate.similarity >= least and _is_open(j)), None)


def _is_open(judged: Judged) -> bool:
    return judged.reason in _OPEN and all(v.outcome is not Outcome.BLOCK for v in judged.verdicts)


__all__ = ["in_doubt"]
