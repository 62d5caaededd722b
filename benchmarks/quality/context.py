"""Follow-up questions under each `context` of a policy: hits where one answer serves both, and where it does not.

    python -m benchmarks.quality.context

The pairs are `context_pairs` and what follows from two files of real conversations. Their stand-alone forms of each
question, written by people, play the part of a resolver that never errs. `joined(k)` is no policy: the last k
questions as one text, for comparison.

The other session files have no such forms. Their turns are replayed in order, a miss is stored, and what is served for
another service, intent or act is wrong for certain; what else is wrong nobody says.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.quality.data import embed, rows
from service.identity.model import ModelIdentity
from service.identity.request import Context, KeyPolicy, Namespace, identify_chat
from service.policy.decision import Candidate, Query, Ruling, decide_threshold
from service.policy.guards.features import features_of

THRESHOLDS = (0.95, 0.9)
MOST = 2_500  # pairs of one kind
FILES = ("sessions_multiwoz", "sessions_sgd")
SESSIONS = 500
_KEPT = 3  # questions before the last one that may hold what it refers to


@dataclass(frozen=True, slots=True)
class Asked:
    """The last question of a talk, the questions before it, and its stand-alone form."""

    before: tuple[str, ...]
    text: str
    alone: str


@dataclass(frozen=True, slots=True)
class Kind:
    """Pairs of one kind, and whether one answer serves both sides."""

    name: str
    same: bool
    pairs: list[tuple[Asked, Asked]]


@dataclass(frozen=True, slots=True)
class Served:
    """The share of a kind's pairs that a context serves at a threshold with guards."""

    kind: str
    same: bool
    pairs: int
    context: str
    threshold: float
    served: float

    def line(self) -> str:
        kind = f"{'one answer' if self.same else 'different'}: {self.kind}"
        return f"{kind:55s} {self.pairs:5d} pairs  at {self.threshold}  {self.context:14s} served {self.served:6.1%}"


# What must agree exactly, and the text that similarity compares.
Read = Callable[[Asked], tuple[bytes, str]]


def kinds() -> list[Kind]:
    draw = random.Random(0)
    talks = _talks()
    found: dict[tuple[str, bool], list[tuple[Asked, Asked]]] = defaultdict(list)
    for row in rows("context_pairs"):
        same = bool(row["same"])
        a = Asked(tuple(row["context_a"]), row["a"], row.get("resolved_a") or row["b"])
        b = Asked(tuple(row["context_b"]), row["b"], row.get("resolved_b") or row["b"])
        found["its stand-alone form" if same else "alike in another talk", same].append((a, b))
    for talk in talks:
        for at in range(1, len(talk)):
            other = draw.choice([t for t in talks if t is not talk])
            for name, same, again in _again(talk, at, other):
                found[name, same].append((talk[at], again))
    return [Kind(name, same, _some(pairs, draw)) for (name, same), pairs in found.items()]


def _talks() -> list[list[Asked]]:
    sessions: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name in ("sessions_trec_cast", "sessions_mtrag"):
        for row in rows(name):
            sessions[row["session"]].append((row["text"], row["resolved"]))
    return [[Asked(tuple(t for t, _ in s[:i]), *s[i]) for i in range(len(s))] for s in sessions.values()]


def _again(talk: Sequence[Asked], at: int, other: Sequence[Asked]) -> Iterator[tuple[str, bool, Asked]]:
    """The question of a talk asked once more, or another one in its place."""
    asked = talk[at]
    elsewhere = tuple(a.text for a in other[:2])
    referred = _words(asked.alone) - _words(asked.text)
    yield "spelled out in the same talk", True, Asked(asked.before, asked.alone, asked.alone)
    kept = next((k for k in range(min(at, _KEPT) + 1) if referred <= _words(*_last(asked.before, k))), None)
    if kept is not None:
        yield (
            "after other talk, what it refers to kept",
            True,
            Asked(elsewhere + _last(asked.before, kept), asked.text, asked.alone),
        )
    if referred:  # what it means there nobody says, but it is not this
        yield "word for word in another talk", False, Asked(elsewhere, asked.text, f"{asked.text} ({elsewhere[-1]})")
    for sibling in talk[1:]:
        if sibling.alone != asked.alone:
            yield "another question in the same talk", False, Asked(asked.before, sibling.text, sibling.alone)


def _words(*texts: str) -> set[str]:
    return {stem for text in texts for stem in features_of(text).content}


def _last(texts: tuple[str, ...], count: int) -> tuple[str, ...]:
    return texts[len(texts) - count :]


def _some(pairs: list[tuple[Asked, Asked]], draw: random.Random) -> list[tuple[Asked, Asked]]:
    return draw.sample(pairs, MOST) if len(pairs) > MOST else pairs


def contexts() -> dict[str, Read]:
    return {
        "conversation": _by_identity(lambda _: Context()),
        **{f"last_turns({k})": _by_identity(lambda _, k=k: Context(turns=k)) for k in (1, 2, 3)},  # type: ignore[misc] # each its k
        "rewritten": _by_identity(lambda asked: Context(rewritten=True, question=asked.alone)),
        **{f"joined({k})": _joined(k) for k in (2, 3)},
    }


def _by_identity(context: Callable[[Asked], Context]) -> Read:
    def read(asked: Asked) -> tuple[bytes, str]:
        identity = identify_chat(
            {"messages": [{"role": "user", "content": text} for text in (*asked.before, asked.text)]},
            namespace=Namespace("benchmark", "talks"),
            model=ModelIdentity("any"),
            policy=KeyPolicy(context=context(asked)),
        )
        return identity.scope.key, identity.text or ""

    return read


def _joined(turns: int) -> Read:
    return lambda asked: (b"", "\n".join((*_last(asked.before, min(turns - 1, len(asked.before))), asked.text)))


def measure() -> Iterator[Served]:
    compared = kinds()
    readings = {
        name: [[(read(a), read(b)) for a, b in kind.pairs] for kind in compared] for name, read in contexts().items()
    }
    texts = sorted({side[1] for tables in readings.values() for table in tables for pair in table for side in pair})
    vectors = dict(zip(texts, embed(texts, name="contexts"), strict=True))

    def serves(asked: tuple[bytes, str], stored: tuple[bytes, str], threshold: float) -> bool:
        if asked[0] != stored[0]:
            return False
        similarity = float(vectors[asked[1]] @ vectors[stored[1]])
        candidate = Candidate("", similarity, stored[1], features_of(stored[1]))
        decision = decide_threshold(Query(asked[1], features_of(asked[1])), [candidate], threshold=threshold)
        return decision.ruling is Ruling.HIT

    for name, tables in readings.items():
        for kind, pairs in zip(compared, tables, strict=True):
            for threshold in THRESHOLDS:
                served = sum(serves(*pair, threshold) for pair in pairs) / len(pairs)
                yield Served(kind.name, kind.same, len(pairs), name, threshold, served)


@dataclass(frozen=True, slots=True)
class Replayed:
    """Turns after the first of a file's sessions under one context: the share served, and of it what is wrong for
    certain."""

    file: str
    context: str
    turns: int
    served: float
    wrong: float

    def line(self) -> str:
        return (
            f"{self.file:18s} {self.context:14s} {self.turns} turns, served {self.served:.1%}, "
            f"wrong for certain {self.wrong:.1%}"
        )


def replay(name: str, *, threshold: float = 0.9) -> Iterator[Replayed]:
    """The first sessions of a file, one after the other."""
    asked, acts = _sessions(name)
    texts = sorted({a.text for a in asked})
    at = {text: i for i, text in enumerate(texts)}
    vectors = embed(texts, name=name)[[at[a.text] for a in asked]]
    readings = contexts()
    for context in ("conversation", "last_turns(1)", "last_turns(2)", "last_turns(3)"):
        stored: dict[bytes, list[int]] = defaultdict(list)
        served = wrong = 0
        for i, a in enumerate(asked):
            scope, _ = readings[context](a)
            similarity = vectors[stored[scope]] @ vectors[i]
            near = [(stored[scope][j], float(similarity[j])) for j in np.argsort(-similarity, kind="stable")[:4]]
            candidates = [Candidate(str(j), s, asked[j].text, features_of(asked[j].text)) for j, s in near]
            decision = decide_threshold(Query(a.text, features_of(a.text)), candidates, threshold=threshold)
            if decision.ruling is not Ruling.HIT or decision.candidate is None:
                stored[scope].append(i)
            elif a.before:
                served += 1
                wrong += acts[int(decision.candidate.entry_id)] != acts[i]
        later = sum(bool(a.before) for a in asked)
        yield Replayed(name, context, later, served / later, wrong / served if served else 0.0)


def _sessions(name: str) -> tuple[list[Asked], list[object]]:
    """Every turn of the first sessions, and what it wants."""
    asked, acts = [], []
    before: dict[str, tuple[str, ...]] = {}
    for row in rows(name):
        if row["session"] not in before and len(before) == SESSIONS:
            break
        talk = before.setdefault(row["session"], ())
        asked.append(Asked(talk, row["text"], row["text"]))
        acts.append((row.get("service"), row.get("intent"), sorted(row["acts"])))
        before[row["session"]] = (*talk, row["text"])
    return asked, acts


if __name__ == "__main__":
    print("share of pairs served with guards, first question stored, second asked")
    for served in measure():
        print(served.line())
    print("turns after the first, replayed session by session at 0.9 with guards")
    for name in FILES:
        for replayed in replay(name):
            print(replayed.line())
