"""One spelling for the fractions, rates, hours and lacks of English texts, before they are cut into tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from types import MappingProxyType

from service.policy.guards import lexicon as lx

_WORDS = MappingProxyType({word: value for word, value in lx.NUMBER_WORDS.items() if 0 < value <= 12})
_PARTS = MappingProxyType({word + s: size for word, size in lx.FRACTIONS.items() for s in ("", "s")})
_COUNT = rf"(\d{{1,3}}|{'|'.join(_WORDS)})"
_UNITS = "|".join(sorted((u for u in lx.UNITS if u.isascii() and u.isalpha() and len(u) > 1), reverse=True))
_UNIT_AHEAD = rf"(?=(?:{_UNITS})\b)"
_OF = rf" of\b(?P<each> an? {_UNIT_AHEAD})?"
# What is named as the first or the other half is no amount.
_NOT_NAMED = "".join(rf"(?<!\b{word} )" for word in ("the", "first", "second", "third", "last", "latter", "other"))
# Abbreviations whose letter case tells what they mean.
_CASED = MappingProxyType({"mW": "milliwatt", "Mb": "megabit", "Gb": "gigabit", "ML": "megalitre", "M": "million"})
_CASED_AMOUNT = re.compile(rf"(?<![\w.,])([$€£¥]?\d+(?:[.,]\d+)*) ?({'|'.join(_CASED)})(?![\w-])")
_HINT = re.compile(r"half|third|quarter|fourth|fifth|tenth|[/\u2044]|clock|[ap]\.\s?m\b|free of\b", re.IGNORECASE)


def spelled(text: str) -> str:
    """Half an hour as 0.5 hour, a third of as 33.333333% of, 5/month as 5 per month, 9 o'clock as 9:00, 5 mW
    as 5 milliwatt, free of as without."""
    text = _CASED_AMOUNT.sub(lambda found: f"{found[1]} {_CASED[found[2]]}", text)
    if not _HINT.search(text):
        return text
    for pattern, replace in _RULES:
        text = pattern.sub(replace, text)
    return text


def _count(text: str) -> int:
    return _WORDS[text.lower()] if text.isalpha() else int(text)


def decimal(value: Fraction) -> str:
    return f"{float(value):.6f}".rstrip("0").rstrip(".")


def _share(value: Fraction, *, each: bool) -> str:
    """A fraction of a unit is a number of it, of anything else a percentage."""
    return f"{decimal(value)} " if each else f"{decimal(value * 100)}% of"


def _digits(found: re.Match[str]) -> str:
    whole, above, bar, below, of, unit = found.groups()
    if not int(below) or int(above) >= int(below) or (bar == "/" and not of and unit is None):
        return found[0]
    value = int(whole or 0) + Fraction(int(above), int(below))
    return _share(value, each=not of or unit is not None)


def _words(found: re.Match[str]) -> str:
    count = 1 if found[1].lower() == "a" else _count(found[1])
    return _share(Fraction(count, _PARTS[found[2].lower()]), each=found["each"] is not None)


def _rate(found: re.Match[str]) -> str:
    return f"{found[1]} per {found[2]}" if found[2].lower() in lx.UNITS else found[0]


def _rule(pattern: str, replace: str | Callable[[re.Match[str]], str]) -> tuple[re.Pattern[str], Callable[..., str]]:
    if isinstance(replace, str):
        return re.compile(pattern, re.IGNORECASE), lambda found: found.expand(replace)
    return re.compile(pattern, re.IGNORECASE), replace


_RULES = (
    _rule(
        r"(?<![\w/.\u2044])(?:(\d{1,3})[ -])?(\d{1,2})([/\u2044])(\d{1,2})(?![\d/\u2044])"
        rf"(?: (of)\b)?(?:(?<=of) an? {_UNIT_AHEAD}|( ?){_UNIT_AHEAD})?",
        _digits,
    ),
    _rule(rf"\b{_COUNT} and a half\b", lambda found: f"{_count(found[1])}.5"),
    _rule(rf"\ban? ({_UNITS}) and a half\b", r"1.5 \1"),
    _rule(rf"{_NOT_NAMED}\bhalf(?: an? |[ -]{_UNIT_AHEAD})", "0.5 "),
    _rule(rf"{_NOT_NAMED}\bhalf (?:of\b|(?=the\b))", "50% of "),
    _rule(rf"\b(a|{_COUNT[1:-1]})[ -]({'|'.join(sorted(_PARTS, reverse=True))}){_OF}", _words),
    _rule(r"(\d ?[a-zµμ]{0,12})/([a-z]{1,8})(?![\w/])", _rate),
    _rule(rf"\b{_COUNT} o'clock\b", lambda found: f"{_count(found[1])}:00"),
    _rule(r"\b([ap])\.\s?m\b\.?", r"\1m"),
    _rule(r"\bfree of (?!charge)", "without "),
)

__all__ = ["decimal", "spelled"]
