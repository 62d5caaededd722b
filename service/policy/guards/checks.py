"""The guards: may one stored answer serve a query, as far as their features tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from service.policy.guards import literal_rules, meaning_rules, nuance_rules, order_rules, question_rules
from service.policy.guards.contrast import Contrast, Finding, Outcome
from service.policy.guards.features import Features


class Guard(StrEnum):
    """Names of the guards, as metrics count them."""

    NUMBERS = "numbers"
    ORDINALS = "ordinals"
    DATES = "dates"
    VERSIONS = "versions"
    IDENTIFIERS = "identifiers"
    URLS = "urls"
    QUOTES = "quotes"
    CODE = "code"
    SCRIPT = "script"
    LANGUAGE = "language"
    NEGATION = "negation"
    OPPOSITES = "opposites"
    PERSONS = "persons"
    DIRECTION = "direction"
    ORDER = "order"
    COMPARISON = "comparison"
    ASPECT = "aspect"
    QUESTION = "question"
    NAMES = "names"
    LETTER_CASE = "letter_case"
    ACCENTS = "accents"
    SYMBOLS = "symbols"
    MOMENT = "moment"
    MANNER = "manner"
    BOUNDS = "bounds"
    QUANTIFIERS = "quantifiers"
    MODALITY = "modality"
    WORDING = "wording"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one guard says of a pair; `evidence` is made of feature values, e.g. `20 kilogram ≠ 30 kilogram`."""

    guard: Guard
    outcome: Outcome
    evidence: str = ""


_RULES = MappingProxyType(
    {
        Guard.NUMBERS: literal_rules.numbers,
        Guard.ORDINALS: literal_rules.ordinals,
        Guard.DATES: literal_rules.dates,
        Guard.VERSIONS: literal_rules.versions,
        Guard.IDENTIFIERS: literal_rules.identifiers,
        Guard.URLS: literal_rules.urls,
        Guard.QUOTES: literal_rules.quotes,
        Guard.CODE: literal_rules.code,
        Guard.SCRIPT: literal_rules.script,
        Guard.LANGUAGE: literal_rules.language,
        Guard.NEGATION: meaning_rules.negation,
        Guard.OPPOSITES: meaning_rules.opposites,
        Guard.PERSONS: meaning_rules.persons,
        Guard.DIRECTION: order_rules.direction,
        Guard.ORDER: order_rules.order,
        Guard.COMPARISON: order_rules.comparison,
        Guard.ASPECT: order_rules.aspect,
        Guard.QUESTION: question_rules.question,
        Guard.NAMES: meaning_rules.names,
        Guard.LETTER_CASE: literal_rules.letter_case,
        Guard.ACCENTS: literal_rules.accents,
        Guard.SYMBOLS: literal_rules.symbols,
        Guard.MOMENT: meaning_rules.moment,
        Guard.MANNER: nuance_rules.manner,
        Guard.BOUNDS: nuance_rules.bounds,
        Guard.QUANTIFIERS: nuance_rules.quantifiers,
        Guard.MODALITY: nuance_rules.modality,
        Guard.WORDING: meaning_rules.wording,
    }
)
_PASSED = MappingProxyType({guard: Verdict(guard, Outcome.PASS) for guard in Guard})


def check(query: Features, stored: Features) -> list[Verdict]:
    """Every guard's verdict on serving the stored entry's answer to the query, in the order of `Guard`.

    A guard that fails blocks, and its evidence names the failure's type, so that it is counted and never hidden.
    """
    contrast = Contrast(query, stored)
    return [_verdict(guard, rule, contrast) for guard, rule in _RULES.items()]


def _verdict(guard: Guard, rule: Callable[[Contrast], Finding], contrast: Contrast) -> Verdict:
    try:
        found = rule(contrast)
    except Exception as error:
        return Verdict(guard, Outcome.BLOCK, f"guard failed: {type(error).__name__}")
    return Verdict(guard, *found) if found else _PASSED[guard]


__all__ = ["Guard", "Outcome", "Verdict", "check"]
