"""Tokens that mean one value together: number words, amounts with their unit, dates."""

from __future__ import annotations

from decimal import Decimal

from service.policy.guards import lexicon as lx
from service.policy.guards.literals import decimal_text
from service.policy.guards.token import Token

NUMERALS = frozenset(lx.NUMBER_WORDS) | frozenset(lx.SCALES) | frozenset(lx.ORDINAL_WORDS) | frozenset(
    lx.CHINESE_DIGITS
) | frozenset(lx.CHINESE_SCALES)  # fmt: skip

_MONTHS = list(dict.fromkeys(lx.MONTHS.values()))


def join_numerals(tokens: list[Token]) -> list[Token]:
    """Number words as numbers: twenty one, five thousand, two hundred and five, 三百; a lone "one" stays a word."""
    joined: list[Token] = []
    i = 0
    while i < len(tokens):
        end, value = _numeral(tokens, i)
        token = tokens[i]
        if value is not None:
            joined.append(Token(token.text, token.lower, token.word, "number", decimal_text(value)))
            i = end
            continue
        if token.kind == "word" and token.lower in lx.ORDINAL_WORDS:
            token = Token(token.text, token.lower, token.word, "ordinal", str(lx.ORDINAL_WORDS[token.lower]))
        joined.append(token)
        i += 1
    return joined


def _numeral(tokens: list[Token], start: int) -> tuple[int, Decimal | None]:
    first = tokens[start]
    if first.lower in lx.CHINESE_DIGITS or first.lower in lx.CHINESE_SCALES:
        return _chinese_numeral(tokens, start)
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


def _chinese_numeral(tokens: list[Token], start: int) -> tuple[int, Decimal | None]:
    total = section = current = 0
    i, digits = start, ""
    while i < len(tokens) and (tokens[i].lower in lx.CHINESE_DIGITS or tokens[i].lower in lx.CHINESE_SCALES):
        char = tokens[i].lower
        if char in lx.CHINESE_DIGITS:
            current = lx.CHINESE_DIGITS[char]
            digits += str(current)
        else:
            scale = lx.CHINESE_SCALES[char]
            if scale >= 10**4:
                total, section, current = total + (section + current) * scale, 0, 0
            else:
                section, current = section + (current or 1) * scale, 0
            digits += "x"
        i += 1
    if i - start == 1 and tokens[start].lower in {"一", "两", "千", "万", "百", "十"}:
        return start + 1, None
    return i, Decimal(digits) if digits.isdigit() else Decimal(total + section + current)


def attach_units(tokens: list[Token]) -> list[Token]:
    """Numbers take the unit, scale or currency that stands beside them: 30 mg, 1.5 million, USD 20, 5 per cent."""
    kept: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        i += 1
        if token.kind == "number" and not token.unit:
            if kept and kept[-1].lower in lx.CURRENCIES:
                token.unit = lx.UNITS[kept.pop().lower]
            else:
                token.unit, used = _unit_after([t.lower for t in tokens[i : i + 2]])
                i += used
        kept.append(token)
    return kept


def _unit_after(following: list[str]) -> tuple[str, int]:
    if not following:
        return "", 0
    if following == ["per", "cent"]:
        return "percent", 2
    unit = lx.UNITS.get(following[0], "")
    if unit == "degree" and following[-1] in {"celsius", "fahrenheit", "centigrade", "c", "f"}:
        return {"c": "celsius", "f": "fahrenheit"}.get(following[-1][0], ""), 2
    pair = "".join(following)
    if len(following) == 2 and pair in lx.UNITS and not following[0].isascii():
        return lx.UNITS[pair], 2
    return unit, 1 if unit else 0


def join_dates(tokens: list[Token]) -> list[Token]:
    """Weekdays, months with their day and year, hours with am or pm, and words as "tomorrow" become dates."""
    joined: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        i += 1
        if token.kind == "word" and (token.lower.rstrip("s") in lx.WEEKDAYS or token.lower.rstrip("s") in lx.MOMENTS):
            token.kind, token.value = "date", token.lower.rstrip("s")
        elif token.kind == "word" and token.lower in lx.MONTHS:
            i = _month(joined, tokens, i, token)
        elif token.kind == "word" and token.lower in {"am", "pm"} and joined and _is_hour(joined[-1]):
            hour = int(joined.pop().value) % 12 + (12 if token.lower == "pm" else 0)
            token.kind, token.value = "date", f"{hour:02}:00"
        joined.append(token)
    return joined


def _month(joined: list[Token], tokens: list[Token], i: int, token: Token) -> int:
    """Turns a month token into a date with the day before or after it and the year after; the index to go on at."""
    day, year = "", ""
    if joined and joined[-1].lower == "of" and len(joined) > 1 and _is_day(joined[-2]):
        joined.pop()
    if joined and _is_day(joined[-1]):
        day = joined.pop().value
    elif i < len(tokens) and _is_day(tokens[i]):
        day, i = tokens[i].value, i + 1
    if i < len(tokens) and _is_year(tokens[i]):
        year, i = tokens[i].value, i + 1
    if day or year or (token.lower not in {"may", "march", "dec", "sep"}) or (token.is_name and token.lower != "dec"):
        token.kind, token.value, token.is_name = "date", _calendar_day(lx.MONTHS[token.lower], day, year), False
    return i


def _calendar_day(month: str, day: str, year: str) -> str:
    """A whole date as ISO 8601 writes it, a part of one in words."""
    if day and year:
        return f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}"
    return " ".join(filter(None, [month, day, year]))


def _is_day(token: Token) -> bool:
    return (
        token.kind in {"number", "ordinal"} and not token.unit and token.value.isdigit() and 1 <= int(token.value) <= 31
    )


def _is_year(token: Token) -> bool:
    return token.kind == "number" and not token.unit and len(token.value) == 4 and token.value.isdigit()


def _is_hour(token: Token) -> bool:
    return token.kind == "number" and token.value.isdigit() and 1 <= int(token.value) <= 12


__all__ = ["NUMERALS", "attach_units", "join_dates", "join_numerals"]
