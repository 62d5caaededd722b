"""What prompts have in common: lengths, templates, beginnings, and how predictable their words are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

OPENING = 6  # words
SHOWN = 10
LONGEST = 120  # characters of a template that are shown

_PLACES = (
    (re.compile(r"https?://\S+"), "<url>"),
    (re.compile(r"\S+@\S+\.\w+"), "<mail>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r'"[^"]*"|“[^”]*”'), "<text>"),
    (re.compile(r"[\w-]*\d(?:[\w.,:/-]*\w)?"), "<number>"),
)
_WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Shared:
    """A text that several prompts have in common, and how many."""

    text: str
    prompts: int


@dataclass(frozen=True, slots=True)
class Texts:
    """prompts: how many were read; quantiles: of characters, and of tokens where the model counted them, at 50, 90, 99
    and 100 %; templated: share of the prompts that are like another but for values; entropy: bits a word."""

    prompts: int
    characters: list[int]
    tokens: list[int]
    histogram: list[tuple[int, int]]
    templated: float
    templates: list[Shared]
    openings: list[Shared]
    entropy: float
    words: int
    distinct_words: int


def read_texts(prompts: Sequence[str], tokens: Iterable[int | None]) -> Texts:
    lengths = [len(prompt) for prompt in prompts]
    templates = Counter(template(prompt) for prompt in prompts)
    openings = Counter(" ".join(said[:OPENING]) for prompt in prompts if len(said := prompt.split()) > OPENING)
    words = Counter(word.lower() for prompt in prompts for word in _WORDS.findall(prompt))
    shared = sum(count for count in templates.values() if count > 1)
    return Texts(
        prompts=len(prompts),
        characters=_quantiles(lengths),
        tokens=_quantiles([count for count in tokens if count]),
        histogram=_histogram(lengths),
        templated=shared / len(prompts) if prompts else 0.0,
        templates=_top(templates),
        openings=_top(openings),
        entropy=entropy(words),
        words=sum(words.values()),
        distinct_words=len(words),
    )


def template(prompt: str) -> str:
    """The prompt with a mark in the place of each address, quotation, identifier and number."""
    for place, mark in _PLACES:
        prompt = place.sub(mark, prompt)
    return " ".join(prompt.split())


def entropy(counts: Counter[str]) -> float:
    """Bits a word carries if each is drawn by its frequency (Shannon)."""
    total = sum(counts.values())
    return -sum(count / total * math.log2(count / total) for count in counts.values()) if total else 0.0


def _quantiles(values: list[int]) -> list[int]:
    ordered = sorted(values)
    return (
        [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.9, 0.99, 1)] if values else []
    )


def _histogram(lengths: list[int]) -> list[tuple[int, int]]:
    """Prompts by length: (more than so many characters, up to twice that), and how many."""
    bins = Counter(1 << max(0, length.bit_length() - 1) for length in lengths)
    return sorted(bins.items())


def _top(counts: Counter[str]) -> list[Shared]:
    return [Shared(text[:LONGEST], count) for text, count in counts.most_common(SHOWN) if count > 1]


__all__ = ["Shared", "Texts", "entropy", "read_texts", "template"]
