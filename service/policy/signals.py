"""What a learned policy sees of a candidate: numbers that mean the same in every cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, log1p
from typing import NamedTuple

from service.policy.decision import FLOOR, Candidate, Query
from service.policy.guards.checks import Guard, Outcome, Verdict, check
from service.policy.guards.contrast import Contrast

SIGNALS_VERSION = 2
_NEAR = 0.8
_ALONE = log1p(1)  # supporters of a candidate without another of the same answer


@dataclass(frozen=True, slots=True)
class Frequencies:
    """In how many of a cache's `total` entries each content stem occurs; a stem that is not listed is in none."""

    total: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def weight(self, stem: str) -> float:
        """Inverse document frequency: 0 for a stem in every entry, more for a rarer one."""
        return max(0.0, log((self.total + 1) / (self.counts.get(stem, 0) + 0.5)))


class Signals(NamedTuple):
    """The inputs of a model, in its order. Weights are inverse document frequencies in the cache's own rows."""

    similarity: float
    margin: float  # to the nearest candidate with another answer
    other: float  # similarity of that one
    agreement: float  # share of candidates with this answer
    supporters: float
    rank: float
    behind: float  # how far behind the nearest candidate
    crowd: float  # how many candidates are nearer than 0.8
    overlap: float  # weighted share of content that both texts have
    query_heaviest: float  # weight of the rarest word that only the query has
    stored_heaviest: float
    query_unmatched: float
    stored_unmatched: float
    query_length: float
    stored_length: float
    alike: float
    same_frame: float
    doubts: float  # how many guards say gray
    wording: float
    numbers: float
    confirmed: float  # how often this entry was found right
    refuted: float
    trust: float  # their share of right ones, shrunk towards one half


@dataclass(frozen=True, slots=True)
class Seen:
    """A candidate that is near enough to count, with the guards' verdicts; `signals` None where one of them blocks."""

    candidate: Candidate
    verdicts: tuple[Verdict, ...]
    signals: Signals | None


def see(query: Query, candidates: Sequence[Candidate], frequencies: Frequencies) -> list[Seen]:
    """The candidates as a learned policy is shown them, nearest first; those below the floor are not."""
    near = [c for c in candidates if c.similarity >= FLOOR]
    verdicts = [tuple(check(query.features, c.features)) for c in near]
    found = signals(query, near, verdicts, frequencies)
    return [Seen(*parts) for parts in zip(near, verdicts, found, strict=True)]


def familiar(shown: Iterable[Signals]) -> bool:
    """Whether near a request other words are known to ask the same: an answer was found right, or two are equal."""
    return any(s.confirmed or s.supporters > _ALONE for s in shown)


def signals(
    query: Query,
    candidates: Sequence[Candidate],
    verdicts: Sequence[Sequence[Verdict]],
    frequencies: Frequencies,
) -> list[Signals | None]:
    """The signals of each candidate; None for one that a guard blocks, which counts as no neighbour at all."""
    open_ = [i for i, found in enumerate(verdicts) if all(v.outcome is not Outcome.BLOCK for v in found)]
    neighbours = [candidates[i] for i in open_]
    sides = (query.features, *(n.features for n in neighbours))
    weights = {word: frequencies.weight(word) for side in sides for word in side.content}
    found: list[Signals | None] = [None] * len(candidates)
    for rank, i in enumerate(open_):
        found[i] = _signals(query, neighbours, rank, verdicts[i], weights)
    return found


def _signals(
    query: Query, neighbours: Sequence[Candidate], rank: int, verdicts: Sequence[Verdict], weights: Mapping[str, float]
) -> Signals:
    candidate = neighbours[rank]
    supporters = [n for n in neighbours if n.answer == candidate.answer]
    other = max((n.similarity for n in neighbours if n.answer != candidate.answer), default=FLOOR)
    contrast = Contrast(query.features, candidate.features)
    query_only = [weights[w] for w in contrast.query_only]
    stored_only = [weights[w] for w in contrast.stored_only]
    whole = sum(weights[w] for w in query.features.content)
    total = whole + sum(stored_only)
    gray = [v.guard for v in verdicts if v.outcome is Outcome.GRAY]
    return Signals(
        similarity=candidate.similarity,
        margin=candidate.similarity - other,
        other=other,
        agreement=len(supporters) / len(neighbours),
        supporters=log1p(len(supporters)),
        rank=rank,
        behind=neighbours[0].similarity - candidate.similarity,
        crowd=sum(n.similarity > _NEAR for n in neighbours),
        overlap=(whole - sum(query_only)) / total if total else 1.0,
        query_heaviest=max(query_only, default=0.0),
        stored_heaviest=max(stored_only, default=0.0),
        query_unmatched=len(query_only),
        stored_unmatched=len(stored_only),
        query_length=len(query.features.content),
        stored_length=len(candidate.features.content),
        alike=contrast.alike,
        same_frame=float(query.features.frame == candidate.features.frame),
        doubts=len(gray),
        wording=float(Guard.WORDING in gray),
        numbers=float(Guard.NUMBERS in gray),
        confirmed=log1p(candidate.confirmed),
        refuted=log1p(candidate.refuted),
        trust=(candidate.confirmed + 1) / (candidate.confirmed + candidate.refuted + 2),
    )


__all__ = ["SIGNALS_VERSION", "Frequencies", "Seen", "Signals", "familiar", "see", "signals"]
