"""The static policy: the nearest entry is served when it is near enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from service.identity.conversation import semantic_text


class Candidate(Protocol):
    """A living neighbour: its prompt and its cosine similarity to the query, 0 to 1."""

    @property
    def prompt(self) -> str: ...
    @property
    def similarity(self) -> float: ...


C = TypeVar("C", bound=Candidate)


class Verdict(StrEnum):
    """Why the decision fell as it did."""

    NEAR_ENOUGH = "near_enough"
    BELOW_THRESHOLD = "below_threshold"
    OTHER_TEXT = "other_text"
    NO_NEIGHBOUR = "no_neighbour"


@dataclass(frozen=True, slots=True)
class Decision(Generic[C]):
    """`chosen` is what is served, None for a miss; `nearest` is what was looked at first."""

    chosen: C | None
    nearest: C | None
    verdict: Verdict
    threshold: float


def decide(text: str, candidates: Sequence[C], threshold: float) -> Decision[C]:
    """Judge candidates, nearest first, for a semantic text.

    A threshold of 1 asks for the same text: other texts can have equal vectors, and equal texts miss 1 by what half
    precision rounds.
    """
    if not candidates:
        return Decision(None, None, Verdict.NO_NEIGHBOUR, threshold)
    nearest = candidates[0]
    if threshold >= 1:
        same = next((c for c in candidates if semantic_text(c.prompt) == text), None)
        return Decision(same, nearest, Verdict.NEAR_ENOUGH if same else Verdict.OTHER_TEXT, threshold)
    if nearest.similarity < threshold:
        return Decision(None, nearest, Verdict.BELOW_THRESHOLD, threshold)
    return Decision(nearest, nearest, Verdict.NEAR_ENOUGH, threshold)


__all__ = ["Candidate", "Decision", "Verdict", "decide"]
