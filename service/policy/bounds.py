"""Intervals for rates of wrong answers, which come in clusters: repeats of one question are wrong together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import sqrt
from statistics import NormalDist


def wilson(wrong: float, total: float, confidence: float) -> tuple[float, float]:
    """Two one-sided Wilson bounds of a rate, each at `confidence`; (0, 1) for no observation."""
    if total <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(confidence)
    rate = wrong / total
    centre = rate + z * z / (2 * total)
    spread = z * sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


@dataclass(slots=True)
class ClusteredRate:
    """A rate over clusters, which may grow one observation at a time.

    Its bounds are Wilson's at the effective number of observations: the number divided by the design effect, the
    clusters' variance over that of independent observations (Kish), never below what the weights alone make of it. An
    observation that counts for many is still one, however many others are known to be right.
    """

    wrong: float = 0
    total: float = 0
    _clusters: dict[str, tuple[float, float]] = field(default_factory=lambda: defaultdict(lambda: (0.0, 0.0)))
    _ww: float = 0
    _wn: float = 0
    _nn: float = 0
    _weight: float = 0
    _squares: float = 0

    def add_right(self, count: int) -> None:
        """So many that are known to be right, each a cluster of its own: they say nothing of the others' weights."""
        self.total += count
        self._nn += count

    def add(self, cluster: str, *, wrong: bool, count: float = 1) -> None:
        w, n = self._clusters[cluster]
        dw, dn = (count if wrong else 0.0), count
        self._ww += 2 * w * dw + dw * dw
        self._wn += w * dn + n * dw + dw * dn
        self._nn += 2 * n * dn + dn * dn
        self._clusters[cluster] = (w + dw, n + dn)
        self.wrong += dw
        self.total += dn
        self._weight += dn
        self._squares += dn * dn

    @property
    def rate(self) -> float:
        return self.wrong / self.total if self.total else 0.0

    @property
    def effective(self) -> float:
        """How many independent observations these are worth."""
        if not self.total:
            return 0.0
        rate = self.rate
        independent = self.total * rate * (1 - rate)
        clustered = self._ww - 2 * rate * self._wn + rate * rate * self._nn
        design = clustered / independent if independent > 0 else 1.0
        unequal = self._squares / self._weight if self._weight else 1.0
        return self.total / max(1.0, design, unequal)

    def bounds(self, confidence: float) -> tuple[float, float]:
        effective = self.effective
        return wilson(self.rate * effective, effective, confidence)


def clustered(outcomes: Iterable[tuple[str, bool]]) -> ClusteredRate:
    """The rate of `(cluster, wrong)` outcomes."""
    rate = ClusteredRate()
    for cluster, wrong in outcomes:
        rate.add(cluster, wrong=wrong)
    return rate


__all__ = ["ClusteredRate", "clustered", "wilson"]
