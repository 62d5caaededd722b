"""Figures of a replay with their intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.quality.replay import Step
from service.policy.bounds import wilson

_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its 95 % intervals: Wilson's, and by resampling whole answers."""

    value: float
    count: int
    of: int
    wilson: tuple[float, float]
    resampled: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the requests of a part of a stream. `headroom` is the captured share of what a perfect decision adds."""

    requests: int
    hit_rate: float
    semantic_hits: int
    headroom: float
    headroom_interval: tuple[float, float]
    false_per_served: Rate
    false_per_semantic: Rate
    false_per_request: Rate


def figures(steps: Sequence[Step], exact: Sequence[Step], best: Sequence[Step]) -> Figures:
    """`exact` and `best` are the replays of the same requests without and with a perfect decision."""
    by_answer: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(7))
    for step, alone, perfect in zip(steps, exact, best, strict=True):
        served = step.served is not None
        by_answer[step.request.answer] += (
            1, served, served and not step.exact, step.false,
            step.right - alone.right, perfect.right - alone.right, step.false and not step.exact,
        )  # fmt: skip
    table = np.array(list(by_answer.values()))
    sums = table.sum(axis=0)
    draws = np.random.default_rng(0).multinomial(len(table), np.full(len(table), 1 / len(table)), _RESAMPLES) @ table
    return Figures(
        requests=len(steps),
        hit_rate=sums[1] / sums[0],
        semantic_hits=int(sums[2]),
        headroom=sums[4] / sums[5] if sums[5] else 0.0,
        headroom_interval=_interval(draws[:, 4], draws[:, 5]),
        false_per_served=_rate(sums[3], sums[1], draws[:, 3], draws[:, 1]),
        false_per_semantic=_rate(sums[6], sums[2], draws[:, 6], draws[:, 2]),
        false_per_request=_rate(sums[3], sums[0], draws[:, 3], draws[:, 0]),
    )


def _rate(count: float, of: float, counts: np.ndarray, ofs: np.ndarray) -> Rate:
    value = count / of if of else 0.0
    return Rate(value, int(count), int(of), wilson(count, of, 0.975), _interval(counts, ofs))


def _interval(counts: np.ndarray, ofs: np.ndarray) -> tuple[float, float]:
    shares = counts[ofs > 0] / ofs[ofs > 0]
    if not len(shares):
        return 0.0, 1.0
    low, high = np.percentile(shares, [2.5, 97.5])
    return float(low), float(high)


__all__ = ["Figures", "Rate", "figures"]
