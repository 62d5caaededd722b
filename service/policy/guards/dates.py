"""Dates and times of day, as written in one chunk or in several words."""

from __future__ import annotations

import re
from collections.abc import Callable

from service.policy.guards import lexicon as lx
from service.policy.guards.token import Token

_CLOCK = re.compile(r"\d\d:\d\d")
_MONTHS = list(dict.fromkeys(lx.MONTHS.values()))
_FRACTIONS = {"quarter": 15, "half": 30}


def calendar(chunk: str) -> tuple[str, str] | None:
    """`(kind, value)` of a date, time of day or ordinal that a chunk without surrounding punctuation is."""
    for pattern, kind, read in _FORMS:
        found = pattern.fullmatch(chunk)
        value = read(*found.groups()) if found else ""
        if value:
            return kind, value
    return None


def _time(hour: str | None, minute: str | None, half: str | None, hour24: str | None, minute24: str | None) -> str:
    if hour is None or half is None:
        return f"{int(hour24 or 0):02}:{minute24}"
    return _clock(int(hour), minute or "00", late=half.lower().startswith("p"))


def _clock(hour: int, minute: str, *, late: bool) -> str:
    return f"{hour % 12 + (12 if late else 0):02}:{minute}"


def _iso(year: str, month: str, day: str) -> str:
    return f"{year}-{int(month):02}-{int(day):02}"


def _iso_month(year: str, month: str) -> str:
    return f"{year}-{int(month):02}" if _is_month(month) else ""


def _named(day: str, month: str, year: str) -> str:
    return _calendar_day(lx.MONTHS[month.lower()], day, year) if month.lower() in lx.MONTHS else ""


def _is_month(text: str) -> bool:
    return 1 <= int(text) <= 12


def _numeric(first: str, mark: str, second: str, year: str) -> str:
    """As ISO 8601 writes it if only one reading is left; with dots the day comes first. Else as written."""
    if len(year) < 4:
        return f"{_padded(first)}/{_padded(second)}/{year}"
    readings = {_iso(year, month, day) for day, month in ((first, second), (second, first)) if _is_month(month)}
    if mark == "." and _is_month(second):
        return _iso(year, second, first)
    return readings.pop() if len(readings) == 1 else f"{_padded(first)}/{_padded(second)}/{year}"


def _padded(text: str) -> str:
    return "/".join(part.zfill(2) for part in text.split("/"))


def is_moment(date: str) -> bool:
    """Whether a date is told from the moment of asking: tomorrow, last month."""
    return date in lx.MOMENTS or date.partition(" ")[0] in lx.RELATIVE.values()


def may_be_one(a: str, b: str) -> bool:
    """Whether two dates may be the same, since a number may be the day or the month: 01/02/2024, 2024-02-01."""
    return not _readings(a).isdisjoint(_readings(b))


def _readings(date: str) -> set[str]:
    parts = date.split("/")
    if len(parts) < 2:
        return {date}
    first, second, year = parts[0], parts[1], "".join(parts[2:])
    days = {_calendar_day(_MONTHS[int(m) - 1], d, year) for d, m in ((first, second), (second, first)) if _is_month(m)}
    return days if year else days | {f"20{y}-{m}" for m, y in ((first, second), (second, first)) if _is_month(m)}


def join_dates(tokens: list[Token]) -> list[Token]:
    """Weekdays, months with their day and year, hours with their half of the day, and words as "tomorrow": dates."""
    joined: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        i += 1
        if token.kind == "word":
            i = _date(joined, tokens, i, token)
        joined.append(token)
    return joined


def _date(joined: list[Token], tokens: list[Token], i: int, token: Token) -> int:
    """Turns a word into the date or time that it makes with its neighbours; the index to go on at."""
    single = token.lower.rstrip("s")
    if token.lower in lx.MONTHS:
        return _month(joined, tokens, i, token)
    if token.lower in {"am", "pm"} and _take_hour(joined, token):
        return i
    if token.lower in {"past", "to"} and i < len(tokens) and _is_hour(tokens[i]) and _take_minutes(joined, token):
        hour = int(tokens[i].value) - (token.lower == "to")
        token.kind, token.value = "date", f"{hour or 12:02}:{token.value}"
        return i + 1
    if token.lower in {"oclock", "o'clock"} and joined and _is_hour(joined[-1]):
        token.kind, token.value = "date", f"{int(joined.pop().value):02}:00"
    elif token.lower in lx.HOURS:
        if joined and joined[-1].kind == "number" and joined[-1].value == "12":
            joined.pop()
        token.kind, token.value = "date", lx.HOURS[token.lower]
    elif token.lower in lx.PERIODS and joined and joined[-1].lower in lx.RELATIVE:
        token.kind, token.value = "date", f"{lx.RELATIVE[joined.pop().lower]} {token.lower}"
    elif single in lx.WEEKDAYS or single in lx.MOMENTS:
        token.kind, token.value = "date", single
    return i


def _take_hour(joined: list[Token], token: Token) -> bool:
    """Makes "am" or "pm" a time with the hour before it, which is taken."""
    if not joined or not (_is_hour(joined[-1]) or _CLOCK.fullmatch(joined[-1].value)):
        return False
    hour, _, minute = joined[-1].value.partition(":")
    if int(hour) > 12:
        return False
    joined.pop()
    token.kind, token.value = "date", _clock(int(hour), minute or "00", late=token.lower == "pm")
    return True


def _take_minutes(joined: list[Token], token: Token) -> bool:
    """Makes "past" or "to" hold the minutes of the quarter or half before it, which is taken."""
    before = joined[-1].lower if joined else ""
    if before not in _FRACTIONS or (token.lower == "to" and before == "half"):
        return False
    joined.pop()
    minutes = _FRACTIONS[before]
    token.value = f"{minutes if token.lower == 'past' else 60 - minutes}"
    return True


def _month(joined: list[Token], tokens: list[Token], i: int, token: Token) -> int:
    """Turns a month token into a date with the day before or after it and the year after; the index to go on at."""
    day, year = "", ""
    if joined and joined[-1].lower == "of" and len(joined) > 1 and _is_day(joined[-2]):
        joined.pop()
    if joined and _is_day(joined[-1]):
        day = joined.pop().value
    elif i < len(tokens) and _is_day(tokens[i]):
        day, i = tokens[i].value, i + 1
    of = i < len(tokens) and tokens[i].lower == "of"
    if i + of < len(tokens) and _is_year(tokens[i + of]):
        year, i = tokens[i + of].value, i + of + 1
    if day or year or (token.lower not in {"may", "march", "dec", "sep"}) or (token.is_name and token.lower != "dec"):
        token.kind, token.value, token.is_name = "date", _calendar_day(lx.MONTHS[token.lower], day, year), False
    return i


def _calendar_day(month: str, day: str, year: str) -> str:
    """A date with its year as ISO 8601 writes it, one without in words."""
    if not year:
        return f"{month} {int(day)}" if day else month
    found = f"{year}-{_MONTHS.index(month) + 1:02}"
    return f"{found}-{int(day):02}" if day else found


def _is_day(token: Token) -> bool:
    return (
        token.kind in {"number", "ordinal"} and not token.unit and token.value.isdigit() and 1 <= int(token.value) <= 31
    )


def _is_year(token: Token) -> bool:
    return token.kind == "number" and not token.unit and len(token.value) == 4 and token.value.isdigit()


def _is_hour(token: Token) -> bool:
    return token.kind == "number" and not token.unit and token.value.isdigit() and 1 <= int(token.value) <= 12


_FORMS: tuple[tuple[re.Pattern[str], str, Callable[..., str]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind, read)
    for pattern, kind, read in (
        (
            r"(\d{1,2})(?:[:h.](\d{2}))?(?::\d{2})?(am|pm|a\.m|p\.m)|(\d{1,2}):(\d{2})(?::\d{2})?",
            "date",
            _time,
        ),
        (r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", "date", _iso),
        (r"(\d{4})[-/](\d{2})", "date", _iso_month),
        (r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})", "date", _numeric),
        (r"(\d{1,2})-([a-z]{3,9})-(\d{4})", "date", _named),
        (r"(\d{1,2})[/.](\d{4})", "date", lambda month, year: _iso_month(year, month)),
        # Day and month, or month and year: a leading zero tells it from a fraction.
        (r"(0\d/\d{1,2}|\d{1,2}/0\d)", "date", _padded),
        (r"'?(\d{2}|\d{4})s", "date", lambda decade: f"{decade}s"),
        (r"(\d+)(?:st|nd|rd|th)", "ordinal", lambda number: str(int(number))),
    )
)

__all__ = ["calendar", "is_moment", "join_dates", "may_be_one"]
