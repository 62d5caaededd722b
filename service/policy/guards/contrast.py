"""Two texts' features side by side, and what a guard finds there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

from service.policy.guards.features import Features

# Shares of equal content words from which two texts say mostly, or nearly, the same.
MOSTLY, NEARLY = 0.6, 0.8
_MOST_PAIRS = 10_000  # of words, which take some 50 ms


class Outcome(StrEnum):
    """`block`: another question. `gray`: perhaps another, ask a second stage. `pass`: this guard sees no difference."""

    PASS = "pass"  # noqa: S105 - not a password
    GRAY = "gray"
    BLOCK = "block"


# What fired with its evidence, which is made of feature values; None where the guard sees no difference.
Finding = tuple[Outcome, str] | None


class Contrast:
    """Both sides with what stands on one of them only; `alike` is the share of content words that both have.

    `query_words` and `stored_words` are all words in small letters, `reworded` what of them one side has alone. `far`:
    that is so much that comparing each word with each would hold up all other requests."""

    __slots__ = (
        "alike", "far", "query", "query_only", "query_words", "reworded", "shared",
        "stored", "stored_only", "stored_words",
    )  # fmt: skip

    def __init__(self, query: Features, stored: Features) -> None:
        self.query, self.stored = query, stored
        self.query_only, self.stored_only = apart(query.content, stored.content)
        self.shared = len(query.content) - len(self.query_only)
        longest = max(len(query.content), len(stored.content))
        self.alike = self.shared / longest if longest else 1.0
        self.query_words, self.stored_words = _in_small_letters(query.cased), _in_small_letters(stored.cased)
        self.reworded = apart(self.query_words, self.stored_words)
        alone = (self.query_only, self.stored_only), self.reworded
        self.far = any(len(here) * len(there) > _MOST_PAIRS for here, there in alone)


@lru_cache(maxsize=8192)
def _in_small_letters(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(str.lower, words))


def apart(a: Sequence[str], b: Sequence[str]) -> tuple[list[str], list[str]]:
    """The multiset differences of both sides, in their order."""
    if a == b:
        return [], []
    return _minus(a, b), _minus(b, a)


def _minus(a: Sequence[str], b: Sequence[str]) -> list[str]:
    left: dict[str, int] = {}
    for item in b:
        left[item] = left.get(item, 0) + 1
    kept = []
    for item in a:
        if count := left.get(item):
            left[item] = count - 1
        else:
            kept.append(item)
    return kept


def between(a: Sequence[str], b: Sequence[str]) -> tuple[int, Sequence[str], Sequence[str]]:
    """Where two texts part, and what is left of both without the words that they begin and end with alike."""
    most = min(len(a), len(b))
    start = next((i for i in range(most) if a[i] != b[i]), most)
    end = next((i for i in range(most - start) if a[-1 - i] != b[-1 - i]), most - start)
    return start, a[start : len(a) - end], b[start : len(b) - end]


def show(a: Iterable[str], b: Iterable[str]) -> str:
    return f"{', '.join(a) or '–'} ≠ {', '.join(b) or '–'}"  # noqa: RUF001 - an en dash for "nothing"


__all__ = ["MOSTLY", "NEARLY", "Contrast", "Finding", "Outcome", "apart", "between", "show"]
