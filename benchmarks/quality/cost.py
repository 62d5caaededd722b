"""What a decision costs in the process: processor time of guards and policy over all near entries of a lookup, as in
a service that runs for a while and so has seen the words."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.quality.replay import Neighbour
from benchmarks.quality.streams import BUDGETS, Bench
from service.policy.calibrated import decide_calibrated
from service.policy.decision import Candidate, Decision, Query, decide_threshold
from service.policy.guards.features import extract
from service.policy.signals import Frequencies
from service.policy.verified import decide_verified, fit

_LOOKUPS = 3_000
_ROUNDS = 3  # the least of them is the cost; more is what else ran on the machine
_THRESHOLD = 0.9
_LABELS = [(0.7, False), (0.8, True), (0.85, False), (0.9, True), (0.95, True)]


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of a step of a lookup."""

    step: str
    lookups: int
    p50: float
    p99: float
    mean: float

    def line(self) -> str:
        return f"{self.step:58s} p50 {self.p50:4.0f} µs, p99 {self.p99:4.0f} µs, mean {self.mean:4.0f} µs"


_Decide = Callable[[Query, Sequence[Candidate]], Decision]


def costs(bench: Bench) -> Iterator[Cost]:
    """Of the last lookups of a stream that have neighbours; the service remembers features of the last 8,192 texts."""
    asked = [(s.request.text, s.neighbours) for s in bench.shadow if s.neighbours][-_LOOKUPS:]
    learned = bench.policy("trees", BUDGETS[0], "")
    features = bench.texts.features
    words = Frequencies(len(features), Counter(word for f in features for word in set(f.content)))
    calibrated = partial(
        decide_calibrated, calibration=learned.calibration, budget=learned.calibration.budget, frequencies=words
    )
    fitted = fit(_LABELS)
    verified = partial(decide_verified, fits=lambda _: fitted, delta=0.01, draw=0.5)
    policies: dict[str, _Decide] = {
        "threshold": partial(decide_threshold, threshold=_THRESHOLD),
        "calibrated": calibrated,
        "verified": verified,
    }
    for name, decide in policies.items():
        yield _cost(f"{name}: features of the question, guards, decision", bench, asked, decide, known=True)
    yield _cost("calibrated: features of the near entries too", bench, asked, calibrated, known=False)


def _cost(
    step: str, bench: Bench, asked: Sequence[tuple[str, Sequence[Neighbour]]], decide: _Decide, *, known: bool
) -> Cost:
    taken = []
    for text, near in asked:
        candidates = bench.texts.candidates(near)
        taken.append(min(_timed(text, candidates, decide, known=known) for _ in range(_ROUNDS)))
    p50, p99 = np.percentile(taken, [50, 99])
    return Cost(step, len(asked), float(p50), float(p99), float(np.mean(taken)))


def _timed(text: str, candidates: Sequence[Candidate], decide: _Decide, *, known: bool) -> float:
    start = time.thread_time_ns()
    if not known:
        for candidate in candidates:
            extract(candidate.text)
    decide(Query(text, extract(text)), candidates)
    return (time.thread_time_ns() - start) / 1_000


__all__ = ["Cost", "costs"]
