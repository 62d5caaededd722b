"""Replays a labelled stream against a policy: exact repeats, then the nearest entries, then the decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.data import Floats, Request, embed

K = 4
DEPTH = 256  # how many nearest texts are known for each text; the stored ones among them are its neighbours


class Neighbour(NamedTuple):
    """An entry near a request: the index of its text among the distinct texts, the similarity, its answer."""

    text: int
    similarity: float
    answer: str


@dataclass(frozen=True, slots=True)
class Step:
    """What happened to one request. `served` is the answer given from the cache, None for a miss."""

    at: int
    request: Request
    exact: bool
    served: str | None
    neighbours: tuple[Neighbour, ...]

    @property
    def right(self) -> bool:
        return self.served == self.request.answer

    @property
    def false(self) -> bool:
        return self.served is not None and not self.right


# Which of the neighbours is served, None for none; `text` is the request's index among the distinct texts.
Decide = Callable[[int, Sequence[Neighbour]], Neighbour | None]


class Stream:
    """A stream with its distinct texts and, for each of them, the others, nearest first."""

    def __init__(self, requests: Sequence[Request], name: str) -> None:
        self.requests = requests
        self.texts = sorted({r.text for r in requests})
        self.at = {text: i for i, text in enumerate(self.texts)}
        self.vectors: Floats = embed(self.texts, name=name)
        self.order, self.similarity = self._near()

    def _near(self) -> tuple[NDArray[np.intp], Floats]:
        similarity = self.vectors @ self.vectors.T
        np.fill_diagonal(similarity, -1)
        near = np.argpartition(-similarity, DEPTH, axis=1)[:, :DEPTH]
        values = np.take_along_axis(similarity, near, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        return np.take_along_axis(near, order, axis=1), np.take_along_axis(values, order, axis=1)

    def neighbours(self, text: int, stored: dict[int, str]) -> tuple[Neighbour, ...]:
        found = []
        for rank, other in enumerate(self.order[text].tolist()):
            if other in stored:
                found.append(Neighbour(other, float(self.similarity[text, rank]), stored[other]))
                if len(found) == K:
                    break
        return tuple(found)


def replay(
    stream: Stream,
    decide: Decide,
    *,
    live_from: int = 0,
    on_store: Callable[[int], None] | None = None,
    on_exact: Callable[[int], None] | None = None,
) -> list[Step]:
    """Every request in order. Before `live_from` nothing is served by similarity; every miss is stored.

    `decide` is not asked before `live_from`; the steps carry the neighbours all the same, as a shadow would see.
    `on_store` is told the text of each miss, `on_exact` the number of each request that repeats a stored text.
    """
    stored: dict[int, str] = {}
    steps = []
    for at, request in enumerate(stream.requests):
        text = stream.at[request.text]
        if text in stored:
            steps.append(Step(at, request, True, stored[text], ()))
            if on_exact:
                on_exact(at)
            continue
        near = stream.neighbours(text, stored)
        chosen = decide(text, near) if near and at >= live_from else None
        if chosen is None:
            stored[text] = request.answer
            if on_store:
                on_store(text)
        steps.append(Step(at, request, False, chosen.answer if chosen else None, near))
    return steps


def perfect(stream: Stream) -> Decide:
    """Serves the nearest neighbour whose answer is right: what no policy over these neighbours can beat."""
    answers = {stream.at[r.text]: r.answer for r in stream.requests}
    return lambda text, near: next((n for n in near if n.answer == answers[text]), None)


def never(_text: int, _near: Sequence[Neighbour]) -> None:
    return None
