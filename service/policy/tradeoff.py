"""What a policy would have served of labelled requests, and how much of it wrongly: hit rate against false hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from service.policy.boundary import Outcome, Per
from service.policy.bounds import ClusteredRate
from service.policy.decision import FLOOR
from service.policy.guards.checks import Outcome as Guarded
from service.policy.model import Model
from service.policy.signals import Signals
from service.policy.training import Observation
from service.policy.verified import Fit, exploration

CONFIDENCE = 0.975  # of each of the two bounds of an interval


@dataclass(frozen=True, slots=True)
class Near:
    """A candidate of a labelled request. guarded: the worst that a guard said; signals: None where one blocked it."""

    similarity: float
    guarded: Guarded
    correct: bool
    cluster: str
    signals: Signals | None


@dataclass(frozen=True, slots=True)
class Labelled:
    """A request that had no exact hit, with its candidates, nearest first. weight: how many requests it stands for."""

    near: tuple[Near, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Labelled requests, and of the same time how many requests there were in all and how many exact hits.

    unseen: semantic hits of that time that the labelled requests do not stand for, since none was drawn of such.
    """

    labelled: Sequence[Labelled]
    requests: int
    exact_hits: int
    unseen: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """A rate with its 95 % interval, in which what is right or wrong together counts together."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Point:
    """What a cut comes to. hit_rate: of all requests, exact hits included; semantic_hits: in number, as weighted."""

    cut: float
    hit_rate: float
    semantic_hits: float
    false_per_semantic_hit: Share
    false_per_served_hit: Share

    def false_per(self, per: Per) -> Share:
        return self.false_per_semantic_hit if per is Per.SEMANTIC_HIT else self.false_per_served_hit


def by_similarity(sample: Sample, *, guards: bool) -> list[Outcome]:
    """The candidate of each request that a threshold would serve first, with its similarity as the score."""
    return [
        Outcome(near.similarity, near.correct, near.cluster, labelled.weight)
        for labelled in sample.labelled
        if (near := _first(labelled, guards=guards)) is not None
    ]


def by_probability(sample: Sample, model: Model) -> list[Outcome]:
    """The candidate of each request that a fitted model finds most likely to be right."""
    open_ = [(labelled, near) for labelled in sample.labelled for near in labelled.near if near.signals is not None]
    chances = model.probabilities([near.signals for _, near in open_ if near.signals]).tolist() if open_ else []
    best: dict[int, Outcome] = {}
    for (labelled, near), chance in zip(open_, chances, strict=True):
        held = best.get(id(labelled))
        if held is None or chance > held.probability:
            best[id(labelled)] = Outcome(chance, near.correct, near.cluster, labelled.weight)
    return list(best.values())


def by_exploration(sample: Sample, fit: Fit | None, delta: float) -> list[Outcome]:
    """What `verified` would serve with one fit for all: each request as often as it would not explore."""
    outcomes = by_similarity(sample, guards=True)
    served = [replace(o, weight=o.weight * (1 - exploration(fit, o.probability, delta))) for o in outcomes]
    return [outcome for outcome in served if outcome.weight > 0]


def point(sample: Sample, outcomes: Iterable[Outcome], cut: float) -> Point:
    """What serving every outcome from the cut on comes to."""
    semantic, served = ClusteredRate(), ClusteredRate()
    served.add_right(sample.exact_hits)
    for outcome in outcomes:
        if outcome.probability >= cut:
            for rate in (semantic, served):
                rate.add(outcome.cluster, wrong=not outcome.correct, count=outcome.weight)
    hits = sample.exact_hits + semantic.total
    return Point(
        cut, hits / sample.requests if sample.requests else 0.0, semantic.total, _share(semantic), _share(served)
    )


def to_train_on(sample: Sample) -> list[Observation]:
    """What a model learns from the sample, in its order."""
    return [
        Observation(number, near.signals, near.correct, near.cluster, labelled.weight)
        for number, labelled in enumerate(sample.labelled)
        for near in labelled.near
        if near.signals is not None
    ]


def _first(labelled: Labelled, *, guards: bool) -> Near | None:
    near = (n for n in labelled.near if n.similarity >= FLOOR)
    return next((n for n in near if not guards or n.guarded is Guarded.PASS), None)


def _share(rate: ClusteredRate) -> Share:
    return Share(rate.rate, *rate.bounds(CONFIDENCE))


__all__ = [
    "Labelled",
    "Near",
    "Point",
    "Sample",
    "Share",
    "by_exploration",
    "by_probability",
    "by_similarity",
    "point",
    "to_train_on",
]
