"""`python -m benchmarks.quality.arriving [SOURCE…]`: a source that arrives when the rest is learned already.

The first half is learned without one source. In the second half it comes too, and the cache goes on learning as a
worker lets it: from its misses, and from a share of its hits that it explores. Beside it stands the same cache with
what it had learned from the first half alone.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.quality.data import ROOT
from benchmarks.quality.policies import Learned, label
from benchmarks.quality.replay import Neighbour, replay
from benchmarks.quality.streams import BUDGETS, Bench, Row
from service.policy.boundary import Budget
from service.policy.signals import Frequencies
from service.policy.training import calibrate, train

EXPLORED = 0.03
GROWN = 0.05  # labelled requests, as a share of those of the last fit, after which the worker fits again


class Learning:
    """The calibrated policy that goes on learning. Requests in the order of time."""

    def __init__(self, bench: Bench, budget: Budget, without: str) -> None:
        self.policy: Learned = bench.policy("trees", budget, without)
        self.observations, self.labels = bench.observe(without=without)
        self.exact_hits, self.live_from = bench.exact_hits(without), bench.half
        self.answers = {bench.stream.at[r.text]: r.answer for r in bench.stream.requests}
        self.draw = random.Random(0)
        self.number = len(bench.stream.requests)
        self.fitted = self.labelled = len({o.request for o in self.observations})

    def __call__(self, text: int, near: Sequence[Neighbour]) -> Neighbour | None:
        chosen = self.policy(text, near)
        if chosen is not None and self.draw.random() >= EXPLORED:
            return chosen
        self._observe(text, near, 1.0 if chosen is None else 1 / EXPLORED)
        if self.labelled > (1 + GROWN) * self.fitted:
            self._fit()
        return None

    def exact(self, at: int) -> None:
        self.exact_hits += at >= self.live_from

    def _observe(self, text: int, near: Sequence[Neighbour], weight: float) -> None:
        self.number += 1
        policy = self.policy
        seen = label(
            policy.texts,
            (self.number, text, self.answers[text]),
            near,
            policy.labels,
            Frequencies(policy.total, policy.counts),
            weight=weight,
        )
        self.observations += [observation for _, observation in seen]
        self.labels.update((n.text, observation.correct) for n, observation in seen)
        self.labelled += bool(seen)

    def _fit(self) -> None:
        trained = train(self.observations)
        self.policy.calibration = calibrate(trained, self.policy.calibration.budget, exact_hits=self.exact_hits)
        self.policy.labels = Counter(self.labels)
        self.fitted = self.labelled


def measure(bench: Bench, budget: Budget, without: str) -> list[Row]:
    """The frozen cache and the learning one, whose hits that were explored count as misses."""
    frozen, _ = bench.learned("trees", budget, without)
    learning = Learning(bench, budget, without)
    steps = replay(
        bench.stream, learning, live_from=bench.half, on_store=learning.policy.stored, on_exact=learning.exact
    )
    cut = learning.policy.calibration.boundary.cut
    name = f"learning on without {without}"
    return [frozen, Row(name, budget.rate, budget.per.value, cut, bench.measure(steps))]


def main() -> None:
    bench = Bench()
    sources = sys.argv[1:] or sorted({r.source for r in bench.stream.requests})
    rows = []
    for source in sources:
        for budget in BUDGETS:
            found = measure(bench, budget, source)
            rows += found
            for row in found:
                print(row.line(), flush=True)
    target = ROOT / "benchmarks" / "results" / "quality-arriving.json"
    target.write_text(json.dumps(list(map(asdict, rows)), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
