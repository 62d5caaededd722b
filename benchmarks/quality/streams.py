"""Policies on a stream: all that is learned or chosen comes from the first half, all that is told from the second."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.quality.data import Request
from benchmarks.quality.data import stream as read_stream
from benchmarks.quality.figures import Figures, figures
from benchmarks.quality.policies import Labels, Learned, SecondStage, Static, Texts, observe
from benchmarks.quality.replay import Neighbour, Step, Stream, never, perfect, replay
from service.policy.boundary import Budget, Per
from service.policy.decision import Ruling
from service.policy.training import Observation, Trained, calibrate, train
from service.policy.verified import Fit, decide_verified, fit

THRESHOLDS = [round(0.6 + 0.005 * i, 3) for i in range(80)]
RATES = (0.01, 0.03, 0.05)
BUDGETS = tuple(Budget(rate, per) for per in (Per.SERVED_HIT, Per.SEMANTIC_HIT) for rate in RATES)
LEVELS = ("static", "static + blocking guards", "static + guards")
DELTAS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1)  # wrong answers per request that are tried


@dataclass(frozen=True, slots=True)
class Row:
    """One policy with what was promised and what was kept."""

    policy: str
    budget: float | None
    per: str
    cut: float | None
    figures: Figures

    def line(self) -> str:
        f = self.figures
        low, high = f.headroom_interval
        budget = f"{self.budget:.1%} per {self.per}" if self.budget is not None else ""
        cut = f"{self.cut:.3f}" if self.cut is not None else "-"
        return (
            f"{self.policy:38s} {budget:23s} {cut:>6s} hit {f.hit_rate:6.1%}  headroom {f.headroom:6.1%} "
            f"[{low:.0%}, {high:.0%}]  false/served {f.false_per_served.value:6.2%} "
            f"[{f.false_per_served.resampled[0]:.2%}, {f.false_per_served.resampled[1]:.2%}]  "
            f"false/semantic {f.false_per_semantic.value:6.2%} "
            f"[{f.false_per_semantic.resampled[0]:.1%}, {f.false_per_semantic.resampled[1]:.1%}] of {f.semantic_hits}"
        )


class Bench:
    """A stream with its reference replays. The first half is a shadow: nothing is served by similarity.

    `compare_answers` False: the policies do not know which entries have the same answer.
    """

    def __init__(self, name: str = "stream_open", *, compare_answers: bool = True) -> None:
        self.stream = Stream(read_stream(name), name)
        self.texts = Texts(self.stream, compare_answers=compare_answers)
        self.half = len(self.stream.requests) // 2
        self.sources = sorted({r.source for r in self.stream.requests})
        self.shadow = replay(self.stream, never)
        self.best = replay(self.stream, perfect(self.stream), live_from=self.half)
        self.observations, _ = self.observe()
        self.trained = cache(self._trained)
        self.learned = cache(self._learned)
        self.static_figures = cache(self._static_figures)
        self.tried = cache(self._tried)
        self.verified_figures = cache(self._verified_figures)

    def observe(self, *, without: str = "") -> tuple[list[Observation], Labels]:
        """What the first half, as a shadow, gives to learn from."""
        return observe(self.texts, self.stream, self.shadow[: self.half], without=without)

    def exact_hits(self, without: str = "") -> int:
        """Those of the first half."""
        return sum(s.exact and s.request.source != without for s in self.shadow[: self.half])

    def _trained(self, kind: str, without: str) -> tuple[Trained, Labels]:
        observations, labels = self.observe(without=without)
        return train(observations, kind=kind), labels

    def measure(self, steps: Sequence[Step], *, source: str = "") -> Figures:
        later = [i for i in range(self.half, len(steps)) if steps[i].request.source.startswith(source)]
        return figures(*([run[i] for i in later] for run in (steps, self.shadow, self.best)))

    def static(self, level: int, budget: Budget, *, without: str = "") -> Row:
        """A cut for the budget from the shadow of the first half, as an operator would choose it."""
        cut = next((t for t in THRESHOLDS if self._shadow_rate(t, level, budget.per, without) <= budget.rate), None)
        found = self.static_figures(level, cut if cut is not None else 1.1)
        return Row(LEVELS[level] + _left_out(without), budget.rate, budget.per.value, cut, found)

    def in_hindsight(self, level: int, budget: Budget) -> Row:
        """The lowest cut that kept the budget on the second half, which nobody can know before."""

        def kept(threshold: float) -> bool:
            return _rate(self.static_figures(level, threshold), budget.per) <= budget.rate

        at = bisect_left(THRESHOLDS, True, key=kept)
        cut = THRESHOLDS[at] if at < len(THRESHOLDS) else None
        found = self.static_figures(level, cut if cut is not None else 1.1)
        return Row(f"{LEVELS[level]}, in hindsight", budget.rate, budget.per.value, cut, found)

    def sweep(self, level: int, thresholds: Iterable[float]) -> list[Row]:
        return [Row(LEVELS[level], None, "", t, self.static_figures(level, t)) for t in thresholds]

    def _static_figures(self, level: int, threshold: float) -> Figures:
        return self.measure(replay(self.stream, Static(self.texts, threshold, level), live_from=self.half))

    def _shadow_rate(self, threshold: float, level: int, per: Per, without: str) -> float:
        """False hits of a threshold over the shadow of the first half."""
        decide = Static(self.texts, threshold, level)
        earlier = [s for s in self.shadow[: self.half] if s.request.source != without]
        hits, false = (sum(s.exact for s in earlier) if per is Per.SERVED_HIT else 0), 0
        for step in earlier:
            if step.served is None:
                chosen = decide(self.stream.at[step.request.text], step.neighbours)
                hits += chosen is not None
                false += chosen is not None and chosen.answer != step.request.answer
        return false / hits if hits else 0.0

    def _learned(self, kind: str, budget: Budget, without: str = "") -> tuple[Row, list[Step]]:
        """`without`: a source that the training does not see."""
        policy = self.policy(kind, budget, without)
        steps = replay(self.stream, policy, live_from=self.half, on_store=policy.stored)
        name = f"calibrated ({kind})" + _left_out(without)
        cut = policy.calibration.boundary.cut
        return Row(name, budget.rate, budget.per.value, cut, self.measure(steps)), steps

    def second_stage(self, budget: Budget, probability: Callable[[str, str], float | None]) -> Row:
        policy = self.policy("trees", budget, "")
        steps = replay(self.stream, SecondStage(policy, probability), live_from=self.half, on_store=policy.stored)
        cut = policy.calibration.boundary.cut
        return Row("calibrated + cross-encoder", budget.rate, budget.per.value, cut, self.measure(steps))

    def policy(self, kind: str, budget: Budget, without: str) -> Learned:
        """What the first half teaches."""
        trained, labels = self.trained(kind, without)
        calibration = calibrate(trained, budget, exact_hits=self.exact_hits(without))
        return Learned(self.texts, calibration, labels)

    def verified(self, delta: float, *, pooled: bool) -> Row:
        """What it promises itself: wrong answers per request. Exploring feeds the fits all along."""
        return Row(_verified_name(pooled), delta, "request", None, self.verified_figures(delta, pooled))

    def verified_within(self, budget: Budget, *, pooled: bool) -> Row:
        """The largest promise that kept the budget in the second quarter, with what it came to in the second half."""
        kept = [d for d in DELTAS if _rate(self.tried(d, pooled), budget.per) <= budget.rate]
        found = self.verified_figures(kept[-1], pooled) if kept else self.measure(self.shadow)
        return Row(_verified_name(pooled), budget.rate, budget.per.value, kept[-1] if kept else None, found)

    def _tried(self, delta: float, pooled: bool) -> Figures:
        quarter = self.half // 2
        steps = _Verified(self, delta, pooled=pooled, live_from=quarter).run(self.stream.requests[: self.half])
        return figures(*(run[quarter : self.half] for run in (steps, self.shadow, self.best)))

    def _verified_figures(self, delta: float, pooled: bool) -> Figures:
        return self.measure(_Verified(self, delta, pooled=pooled, live_from=self.half).run(self.stream.requests))


def _left_out(source: str) -> str:
    return f" without {source}" if source else ""


def _verified_name(pooled: bool) -> str:
    return f"verified ({'pooled' if pooled else 'per entry'})"


def _rate(found: Figures, per: Per) -> float:
    return (found.false_per_served if per is Per.SERVED_HIT else found.false_per_semantic).value


class _Verified:
    """vCache's loop: before `live_from` it only explores; a prompt whose candidate was right becomes its alias, no
    entry."""

    def __init__(self, bench: Bench, delta: float, *, pooled: bool, live_from: int) -> None:
        self.bench, self.delta, self.pooled, self.live_from = bench, delta, pooled, live_from
        self.labels: dict[str, list[tuple[float, bool]]] = defaultdict(list)
        self.fits: dict[str, tuple[int, Fit | None]] = {}
        self.draws = random.Random(0)

    def run(self, requests: Sequence[Request]) -> list[Step]:
        stored: dict[int, str] = {}
        aliases: dict[int, str] = {}
        steps = []
        for at, request in enumerate(requests):
            text = self.bench.stream.at[request.text]
            known = stored.get(text) or aliases.get(text)
            if known is not None:
                steps.append(Step(at, request, True, known, ()))
                continue
            near = self.bench.stream.neighbours(text, stored)
            served, right = self._decide(at, text, near, request.answer)
            if served is None:
                (aliases if right else stored)[text] = request.answer
            steps.append(Step(at, request, False, served, near))
        return steps

    # What is served, and whether an explored candidate was right.
    def _decide(self, at: int, text: int, near: Sequence[Neighbour], answer: str) -> tuple[str | None, bool]:
        candidates = self.bench.texts.candidates(near)
        decision = decide_verified(
            self.bench.texts.query(text),
            candidates,
            fits=lambda c: self._fit("" if self.pooled else c.entry_id),
            delta=self.delta,
            draw=self.draws.random() if at >= self.live_from else 0.0,
        )
        if decision.ruling is Ruling.HIT and decision.candidate and at >= self.live_from:
            return decision.candidate.answer, False
        if decision.candidate is None:
            return None, False
        right = decision.candidate.answer == answer
        key = "" if self.pooled else decision.candidate.entry_id
        self.labels[key].append((decision.candidate.similarity, right))
        return None, right

    def _fit(self, key: str) -> Fit | None:
        """Fitted anew when the labels have grown by a tenth, as a worker would."""
        known, found = self.fits.get(key, (0, None))
        labels = self.labels[key]
        if len(labels) > known * 1.1:
            found = fit(labels)
            self.fits[key] = (len(labels), found)
        return found


__all__ = ["BUDGETS", "LEVELS", "RATES", "Bench", "Row"]
