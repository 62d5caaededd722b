"""Vectors against plain keys, by the way in which a question comes again: literally, in synonyms, or extended.

    python -m benchmarks.quality.kinds

Of each group of texts that one answer serves, the first is stored, and each other one is asked once among all that is
stored. Synonyms: each side has content words that the other lacks; extended: only one side has more. Literal: the
stored text as people type it again, a fifth of them with other spaces, another letter case or without the end mark.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from benchmarks.quality.data import embed, pairs
from service.identity.conversation import semantic_text
from service.policy.bounds import ClusteredRate
from service.policy.decision import Candidate, Query, Ruling, decide_threshold
from service.policy.guards.contrast import apart
from service.policy.guards.features import Features, extract, features_of

FILES = ("pairs_pararel", "pairs_bitext_entity", "pairs_gptcache_mock", "pairs_semcache_adversarial")
THRESHOLDS = (0.95, 0.9, 0.85)
NEIGHBOURS = 4
RETYPED = 0.2
Kind = Literal["literal", "synonyms", "extended"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A text asked again, and the number of the stored one whose answer is right."""

    kind: Kind
    text: str
    right: int


@dataclass(frozen=True, slots=True)
class KindRow:
    """One kind of questions under plain keys (threshold None) or vectors. false: of the hits, with 95 % bounds."""

    kind: Kind
    asked: int
    threshold: float | None
    guards: bool
    hit_rate: float
    right_rate: float
    false: float
    false_interval: tuple[float, float]

    def line(self) -> str:
        how = "plain keys" if self.threshold is None else f"vectors at {self.threshold}{' with guards' * self.guards}"
        return (
            f"{self.kind:9s} {self.asked:6d} asked  {how:28s} hits {self.hit_rate:6.1%}  right {self.right_rate:6.1%}  "
            f"false per hit {self.false:6.2%} [{self.false_interval[0]:.2%}, {self.false_interval[1]:.2%}]"
        )


def measure() -> Iterator[KindRow]:
    groups = _groups()
    stored = [group[0] for group in groups]
    asked = list(_asked(groups))
    texts = sorted({*stored, *(semantic_text(a.text) or "" for a in asked)})
    vectors = dict(zip(texts, embed(texts, name="kinds"), strict=True))
    table = np.stack([vectors[text] for text in stored])
    features = [extract(text) for text in stored]
    for kind in get_args(Kind):
        of_kind = [a for a in asked if a.kind == kind]
        near = [_near(vectors[semantic_text(a.text) or ""] @ table.T, stored, features) for a in of_kind]
        keys = [a.right if a.text == stored[a.right] else None for a in of_kind]
        yield _row(kind, None, False, of_kind, keys)
        for guards in (True, False):
            for threshold in THRESHOLDS:
                served = [
                    key if key is not None else _serve(a.text, candidates, threshold, guards=guards)
                    for a, key, candidates in zip(of_kind, keys, near, strict=True)
                ]
                yield _row(kind, threshold, guards, of_kind, served)


def _groups() -> list[list[str]]:
    """Texts that one answer serves, by union of the files' true pairs."""
    parent: dict[str, str] = {}

    def root(text: str) -> str:
        while parent.setdefault(text, text) != text:
            text = parent[text]
        return text

    for name in FILES:
        for pair in pairs(name):
            a, b = semantic_text(pair.a), semantic_text(pair.b)
            if a and b and pair.same:
                parent[root(b)] = root(a)
    groups: dict[str, list[str]] = defaultdict(list)
    for text in parent:
        groups[root(text)].append(text)
    return list(groups.values())


def _asked(groups: list[list[str]]) -> Iterator[Asked]:
    draw = random.Random(0)
    for right, (stored, *others) in enumerate(groups):
        yield Asked("literal", _retyped(stored, draw) if draw.random() < RETYPED else stored, right)
        for text in others:
            kind = _kind(extract(text), extract(stored))
            if kind is not None:
                yield Asked(kind, text, right)


def _retyped(text: str, draw: random.Random) -> str:
    return draw.choice([f"{text} ", text.replace(" ", "  ", 1), text.lower(), text.upper(), text.rstrip("?.! ")])


def _kind(a: Features, b: Features) -> Kind | None:
    """None where only small words differ."""
    left, right = apart(a.content, b.content)
    if left and right:
        return "synonyms"
    return "extended" if left or right else None


def _near(similarity: np.ndarray, stored: list[str], features: list[Features]) -> list[Candidate]:
    best = np.argsort(-similarity, kind="stable")[:NEIGHBOURS].tolist()
    return [Candidate(str(i), float(similarity[i]), stored[i], features[i]) for i in best]


def _serve(text: str, candidates: list[Candidate], threshold: float, *, guards: bool) -> int | None:
    question = semantic_text(text) or ""
    decision = decide_threshold(Query(question, features_of(question)), candidates, threshold=threshold, guards=guards)
    served = decision.candidate if decision.ruling is Ruling.HIT else None
    return int(served.entry_id) if served else None


def _row(kind: Kind, threshold: float | None, guards: bool, asked: list[Asked], served: list[int | None]) -> KindRow:
    false = ClusteredRate()
    for a, number in zip(asked, served, strict=True):
        if number is not None:
            false.add(str(a.right), wrong=number != a.right)
    return KindRow(
        kind,
        len(asked),
        threshold,
        guards,
        false.total / len(asked),
        (false.total - false.wrong) / len(asked),
        false.rate,
        false.bounds(0.975),
    )


if __name__ == "__main__":
    print("questions that come again: hits, and how many of them were wrong (95 %)")
    for row in measure():
        print(row.line())
