"""One token of a text: a word with its grammatical part, or a literal with its value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from service.policy.guards import lexicon as lx
from service.policy.guards.words import degree, stem

_SIGIL = {"number": "#", "ordinal": "#", "date": "@", "version": "$", "identifier": "$"}
_PERSONS = dict.fromkeys(["he", "him", "his", "himself", "他"], "he") | dict.fromkeys(
    ["she", "her", "hers", "herself", "她"], "she"
)
_REQUESTS = frozenset(map(stem, lx.REQUESTS))


class Word(NamedTuple):
    """What is known of a word by itself."""

    role: str
    stem: str
    degree: str
    asymmetric: str
    language: str
    person: str


@dataclass(slots=True)
class Token:
    """A word or a literal. `role` is content, relation or filler; other fields are empty where they say nothing."""

    text: str
    lower: str
    word: Word
    kind: str = "word"
    value: str = ""
    unit: str = ""
    is_name: bool = False
    starts: bool = False

    @property
    def role(self) -> str:
        return self.word.role if self.kind == "word" else "content"

    @property
    def stem(self) -> str:
        return self.word.stem if self.kind == "word" else f"{_SIGIL[self.kind]}{self.comparable}"

    @property
    def comparable(self) -> str:
        return f"{self.value} {self.unit}" if self.unit else self.value


@lru_cache(maxsize=65536)
def word(lower: str) -> Word:
    root = stem(lower)
    role = "content"
    if lower in lx.RELATIONS or lower in lx.NEGATORS or lower in lx.CHINESE_NEGATORS:
        role = "relation"
    elif lower in lx.FILLERS or root in _REQUESTS:
        role = "filler"
    return Word(
        role=role,
        stem=root,
        degree=degree(lower)[1] or "",
        asymmetric=lx.ASYMMETRIC.get(lower, ""),
        language=lower if lower in lx.LANGUAGES else "",
        person=_PERSONS.get(lower, ""),
    )


__all__ = ["Token", "Word", "word"]
