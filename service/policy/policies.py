"""Which policy decides: the cache's own, and beside it the one that a caller asks for, which can only tighten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from service.policy.cache_policy import CachePolicy
from service.policy.calibrated import Calibration, decide_calibrated
from service.policy.decision import (
    Candidate,
    Decision,
    Judged,
    Policy,
    Query,
    Reason,
    Ruling,
    decide_threshold,
)
from service.policy.signals import Frequencies
from service.policy.verified import Fit, decide_verified

_BYTES_OF_A_WORD, _BYTES_OF_A_MODEL = 120, 60_000


@dataclass(frozen=True, slots=True)
class Learned:
    """What was fitted for a cache and an embedder. `pooled`: the fit over all entries, for the policy verified."""

    calibration: Calibration | None = None
    frequencies: Frequencies = field(default_factory=Frequencies)
    pooled: Fit | None = None

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        model = self.calibration is not None and self.calibration.model is not None
        return len(self.frequencies.counts) * _BYTES_OF_A_WORD + model * _BYTES_OF_A_MODEL


NOTHING_LEARNED = Learned()


@dataclass(frozen=True, slots=True)
class Decider:
    """A cache's policy with what it has learned.

    `fits` gives the fit of a candidate's own entry. `draw` is uniform in 0 to 1, made outside. `threshold` is a bound
    on similarity that a caller adds.
    """

    policy: CachePolicy
    learned: Learned
    fits: Callable[[Candidate], Fit | None]
    draw: float
    threshold: float | None = None

    def decide(self, query: Query, candidates: Sequence[Candidate], asked: Policy | None = None) -> Decision:
        """A hit only where the cache's policy and the one `asked` for both choose the same answer."""
        own = self._decide(self.policy.decision, query, candidates)
        if own.ruling is not Ruling.HIT or asked in (None, self.policy.decision):
            return own
        other = self._decide(asked, query, candidates)
        if other.ruling is not Ruling.HIT or other.candidate is None or own.candidate is None:
            return other
        return own if own.candidate.answer == other.candidate.answer else _dispute(other)

    def _decide(self, name: Policy, query: Query, candidates: Sequence[Candidate]) -> Decision:
        policy, threshold = self.policy, self.policy.threshold(self.threshold, name)
        if name == "threshold":
            return decide_threshold(query, candidates, threshold=threshold, guards=policy.guards)
        if name == "calibrated":
            return decide_calibrated(
                query,
                candidates,
                calibration=self.learned.calibration,
                budget=policy.budget,
                frequencies=self.learned.frequencies,
                threshold=threshold,
            )
        return decide_verified(
            query,
            candidates,
            fits=(lambda _: self.learned.pooled) if policy.pooled else self.fits,
            delta=policy.wrong_per_request,
            draw=self.draw,
            threshold=threshold,
        )


def _dispute(decision: Decision) -> Decision:
    judged = tuple(map(_disputed, decision.judged))
    return replace(decision, ruling=Ruling.MISS, reason=Reason.DISPUTED, judged=judged, candidate=None)


def _disputed(judged: Judged) -> Judged:
    return replace(judged, reason=Reason.DISPUTED) if judged.reason is Reason.ACCEPTED else judged


__all__ = ["NOTHING_LEARNED", "Decider", "Learned"]
