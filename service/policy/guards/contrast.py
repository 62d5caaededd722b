"""Two texts' features side by side, and what a guard finds there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from service.policy.guards.features import Features

# Shares of equal content words from which two texts say mostly, or nearly, the same.
MOSTLY, NEARLY = 0.6, 0.8


class Outcome(StrEnum):
    """`block`: another question. `gray`: perhaps another, ask a second stage. `pass`: this guard sees no difference."""

    PASS = "pass"  # noqa: S105 - not a password
    GRAY = "gray"
    BLOCK = "block"


# What fired with its evidence, which is made of feature values; None where the guard sees no difference.
Finding = tuple[Outcome, str] | None


class Contrast:
    """Both sides with what stands on one of them only; `alike` is the share of content words that both have."""

    __slots__ = ("alike", "query", "query_only", "shared", "stored", "stored_only")

    def __init__(self, query: Features, stored: Features) -> None:
        self.query, self.stored = query, stored
        self.query_only, self.stored_only = apart(query.content, stored.content)
        self.shared = len(query.content) - len(self.query_only)
        longest = max(len(query.content), len(stored.content))
        self.alike = self.shared / longest if longest else 1.0


def apart(a: Sequence[str], b: Sequence[str]) -> tuple[list[str], list[str]]:
    """The multiset differences of both sides, in their order."""
    if a == b:
        return [], []
    return _minus(a, b), _minus(b, a)


def _minus(a: Sequence[str], b: Sequence[str]) -> list[str]:
    rest = list(b)
    kept = []
    for item in a:
        if item in rest:
            rest.remove(item)
        else:
            kept.append(item)
    return kept


def show(a: Iterable[str], b: Iterable[str]) -> str:
    return f"{', '.join(a) or '–'} ≠ {', '.join(b) or '–'}"  # noqa: RUF001 - an en dash for "nothing"


__all__ = ["MOSTLY", "NEARLY", "Contrast", "Finding", "Outcome", "apart", "show"]
