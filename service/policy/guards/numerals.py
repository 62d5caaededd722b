"""Number words as numbers."""

from __future__ import annotations

from decimal import Decimal

from service.policy.guards import lexicon as lx
from service.policy.guards.quantities import decimal_text
from service.policy.guards.token import Token

NUMERALS = frozenset([*lx.NUMBER_WORDS, *lx.SCALES, *lx.ORDINAL_WORDS])


def join_numerals(tokens: list[Token]) -> list[Token]:
    """Number words as numbers: twenty one, two hundred and five, twenty-first; a lone "one" stays a word."""
    joined: list[Token] = []
    i = 0
    while i < len(tokens):
        token, kind = tokens[i], "ordinal"
        end, value = _ordinal(tokens, i)
        if value is None:
            kind = "number"
            end, value = _numeral(tokens, i)
        joined.append(token if value is None else Token(token.text, token.lower, token.word, kind, decimal_text(value)))
        i = end
    return joined


def _ordinal(tokens: list[Token], start: int) -> tuple[int, Decimal | None]:
    tens = lx.NUMBER_WORDS.get(tokens[start].lower, 0)
    end = start + (2 if tens >= 20 else 1)
    last = tokens[end - 1] if end <= len(tokens) else None
    ones = lx.ORDINAL_WORDS.get(last.lower, 0) if last and last.kind == "word" else 0
    return (end, Decimal(tens + ones)) if ones and (tens < 20 or ones < 10) else (start + 1, None)


def _numeral(tokens: list[Token], start: int) -> tuple[int, Decimal | None]:
    first = tokens[start]
    total, current = Decimal(0), Decimal(0)
    i, seen = start, False
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "number" and i == start and not token.unit:
            current = Decimal(token.value)
        elif token.lower in lx.NUMBER_WORDS and (not seen or tokens[i - 1].lower in _JOINABLE):
            current += lx.NUMBER_WORDS[token.lower]
        elif token.lower in lx.SCALES and token.kind == "word" and (seen or _is_article(tokens, start)):
            scale = lx.SCALES[token.lower]
            current = (current or Decimal(1)) * scale
            if scale > 100:
                total, current = total + current, Decimal(0)
        elif not (seen and token.lower == "and" and _continues(tokens, i)):
            break
        seen, i = True, i + 1
    words = i - start
    if not seen or (words == 1 and (first.kind == "number" or _lone_one(tokens, start))):
        return start + 1, None
    return i, total + current


_JOINABLE = frozenset(
    [
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "hundred",
        "thousand",
        "million",
        "billion",
        "and",
    ]
)


def _is_article(tokens: list[Token], start: int) -> bool:
    return start > 0 and tokens[start - 1].lower in {"a", "an"}


def _continues(tokens: list[Token], i: int) -> bool:
    """Whether "and" joins parts of one number, as in two hundred and five."""
    return (
        tokens[i - 1].lower in {"hundred", "thousand"}
        and i + 1 < len(tokens)
        and tokens[i + 1].lower in lx.NUMBER_WORDS
    )


def _lone_one(tokens: list[Token], start: int) -> bool:
    after = tokens[start + 1].lower if start + 1 < len(tokens) else ""
    return tokens[start].lower == "one" and after not in lx.UNITS


__all__ = ["NUMERALS", "join_numerals"]
