"""The policies under test, as the replay asks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from benchmarks.quality.replay import Neighbour, Step, Stream
from service.policy.cache_policy import CachePolicy
from service.policy.calibrated import Calibration, decide_calibrated
from service.policy.decision import FLOOR, Candidate, Decision, Query, Ruling
from service.policy.doubt import in_doubt
from service.policy.guards.checks import Outcome, Verdict, check
from service.policy.guards.features import Features, extract
from service.policy.signals import Frequencies, signals
from service.policy.training import Observation

_DEFAULTS = CachePolicy()

Labels = Counter[tuple[int, bool]]  # by text of an entry and whether its answer was right


class Texts:
    """Features of a stream's texts and verdicts of its pairs, each made once."""

    def __init__(self, stream: Stream, *, compare_answers: bool = True) -> None:
        self.compare_answers = compare_answers
        self.texts = stream.texts
        self.features: list[Features] = [extract(text) for text in stream.texts]
        self.verdicts = lru_cache(maxsize=None)(self._verdicts)

    def _verdicts(self, query: int, stored: int) -> tuple[Verdict, ...]:
        return tuple(check(self.features[query], self.features[stored]))

    def query(self, text: int) -> Query:
        return Query(self.texts[text], self.features[text])

    def candidates(self, near: Sequence[Neighbour], labels: Labels | None = None) -> list[Candidate]:
        found = labels or Counter()
        return [
            Candidate(
                str(n.text),
                n.similarity,
                self.texts[n.text],
                self.features[n.text],
                n.answer if self.compare_answers else str(n.text),
                found[n.text, True],
                found[n.text, False],
            )
            for n in near
        ]


@dataclass(frozen=True)
class Static:
    """A threshold without guards, with those that block, or with those in doubt too (`level` 0, 1, 2)."""

    texts: Texts
    threshold: float
    level: int

    def __call__(self, text: int, near: Sequence[Neighbour]) -> Neighbour | None:
        for n in near:
            if n.similarity < self.threshold:
                return None
            if self.level == 0 or self._worst(text, n.text) < 3 - self.level:
                return n
        return None

    def _worst(self, query: int, stored: int) -> int:
        outcomes = {v.outcome for v in self.texts.verdicts(query, stored)}
        return 2 if Outcome.BLOCK in outcomes else 1 if Outcome.GRAY in outcomes else 0


@dataclass
class Learned:
    """The calibrated policy. It counts the words of what is stored, as the cache's rows would tell them; what labels
    say of entries stays as it was when it was fitted."""

    texts: Texts
    calibration: Calibration
    labels: Labels
    total: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def __call__(self, text: int, near: Sequence[Neighbour]) -> Neighbour | None:
        decision = self.decide(text, near)
        return _chosen(near, decision.candidate) if decision.ruling is Ruling.HIT else None

    def decide(self, text: int, near: Sequence[Neighbour]) -> Decision:
        return decide_calibrated(
            self.texts.query(text),
            self.texts.candidates(near, self.labels),
            calibration=self.calibration,
            budget=self.calibration.budget,
            frequencies=Frequencies(self.total, self.counts),
        )

    def stored(self, text: int) -> None:
        self.total += 1
        self.counts.update(set(self.texts.features[text].content))


@dataclass(frozen=True)
class SecondStage:
    """The calibrated policy with a cross-encoder for the nearest entry in doubt, by the default values of a cache's
    policy. `probability` is that two questions ask the same; None: they are too long."""

    policy: Learned
    probability: Callable[[str, str], float | None]

    def __call__(self, text: int, near: Sequence[Neighbour]) -> Neighbour | None:
        decision = self.policy.decide(text, near)
        if decision.ruling is Ruling.HIT:
            return _chosen(near, decision.candidate)
        doubted = in_doubt(decision, _DEFAULTS.doubt_threshold)
        if doubted is None:
            return None
        same = self.probability(self.policy.texts.texts[text], doubted.candidate.text)
        accepted = same is not None and same >= _DEFAULTS.second_stage_threshold
        return _chosen(near, doubted.candidate) if accepted else None


def _chosen(near: Sequence[Neighbour], candidate: Candidate | None) -> Neighbour | None:
    return next((n for n in near if candidate and str(n.text) == candidate.entry_id), None)


def label(
    texts: Texts,
    request: tuple[int, int, str],
    near: Sequence[Neighbour],
    labels: Labels,
    frequencies: Frequencies,
    *,
    weight: float = 1.0,
) -> list[tuple[Neighbour, Observation]]:
    """The neighbours of a request as observations; it is its number, its text's index, and its answer."""
    at, text, answer = request
    close = [n for n in near if n.similarity >= FLOOR]
    verdicts = [texts.verdicts(text, n.text) for n in close]
    rows = signals(texts.query(text), texts.candidates(close, labels), verdicts, frequencies)
    return [
        (n, Observation(at, row, n.answer == answer, n.answer, weight))
        for row, n in zip(rows, close, strict=True)
        if row is not None
    ]


def observe(
    texts: Texts, stream: Stream, steps: Sequence[Step], *, without: str = ""
) -> tuple[list[Observation], Labels]:
    """What a shadow would have recorded: each neighbour of each miss, and whether its answer was the right one; and
    how often each entry was found right and wrong. Nothing of the source `without`."""
    counts: Counter[str] = Counter()
    labels: Labels = Counter()
    total = 0
    found: list[Observation] = []
    for step in steps:
        if step.served is not None:
            continue
        text = stream.at[step.request.text]
        if step.request.source != without:
            request = (step.at, text, step.request.answer)
            seen = label(texts, request, step.neighbours, labels, Frequencies(total, counts))
            found += [observation for _, observation in seen]
            labels.update((n.text, observation.correct) for n, observation in seen)
        total += 1
        counts.update(set(texts.features[text].content))
    return found, labels


__all__ = ["Labels", "Learned", "SecondStage", "Static", "Texts", "label", "observe"]
