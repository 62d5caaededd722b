"""Amounts: numbers with the unit, currency and rate beside them, in the largest unit that leaves them whole."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType

from service.policy.guards import lexicon as lx
from service.policy.guards.token import Token

# Units of one dimension, by how many of the smallest each is.
_LADDERS = (
    {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800},
    {"month": 1, "year": 12, "decade": 120, "century": 1200},
    {"millimetre": 1, "centimetre": 10, "metre": 1000, "kilometre": 10**6},
    {"inch": 1, "foot": 12, "yard": 36, "mile": 63360},
    {"microgram": 1, "milligram": 1000, "gram": 10**6, "kilogram": 10**9},
    {"millilitre": 1, "centilitre": 10, "decilitre": 100, "litre": 1000},
    {"watt": 1, "kilowatt": 1000, "megawatt": 10**6},
    {"hertz": 1, "kilohertz": 1000, "megahertz": 10**6, "gigahertz": 10**9},
)
_LADDER_OF = MappingProxyType({unit: ladder for ladder in _LADDERS for unit in ladder})
_POWERS = frozenset({"square", "cubic"})
_PER = frozenset({"per", "a", "an", "every", "each"})
_SIGNS = frozenset({"minus", "negative"})
_LONGEST = 20


def attach_units(tokens: list[Token]) -> list[Token]:
    """Numbers take the sign, unit, rate or currency beside them: minus 5 °C, 30 mg, USD 20, 5 per cent, 90 km per h."""
    kept: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        i += 1
        if token.kind == "number":
            if _signed(kept):
                kept.pop()
                token.value = f"-{token.value}"
            if not token.unit:
                i += _take_unit(kept, token, [t.lower for t in tokens[i : i + 2]])
            i += _take_rate(token, [t.lower for t in tokens[i : i + 2]])
            token.value, token.unit = _whole(token.value, token.unit)
        kept.append(token)
    return kept


def _signed(kept: list[Token]) -> bool:
    """Whether a sign in words stands before a number; after another operand it would be an operator."""
    return bool(kept) and kept[-1].lower in _SIGNS and (len(kept) == 1 or kept[-2].role != "content")


def _take_unit(kept: list[Token], token: Token, following: list[str]) -> int:
    """Gives the number its unit; how many of the tokens after it that takes."""
    if kept and kept[-1].lower in lx.CURRENCIES:
        token.unit = lx.UNITS[kept.pop().lower]
        return 0
    token.unit, used = _unit_in(following)
    return used


def _unit_in(following: list[str]) -> tuple[str, int]:
    if not following:
        return "", 0
    if following == ["per", "cent"]:
        return "percent", 2
    first, last = following[0], following[-1]
    if first in _POWERS and last in lx.UNITS:
        return f"{first} {lx.UNITS[last]}", 2
    unit = lx.UNITS.get(first, "")
    if unit == "degree" and last in {"celsius", "fahrenheit", "centigrade", "c", "f"}:
        return {"c": "celsius", "f": "fahrenheit"}[last[0]], 2
    return unit, 1 if unit else 0


def _take_rate(token: Token, following: list[str]) -> int:
    if token.unit and following and following[0] in lx.RATES:
        token.unit += f" per {lx.RATES[following[0]]}"
        return 1
    if token.unit and len(following) == 2 and following[0] in _PER and following[1] in lx.UNITS:
        token.unit += f" per {lx.UNITS[following[1]]}"
        return 2
    return 0


@lru_cache(maxsize=16384)
def _whole(value: str, unit: str) -> tuple[str, str]:
    """The amount in the largest unit that leaves it whole, else in the smallest: 14 days are 2 weeks."""
    counted, per, of = unit.partition(" per ")
    ladder = _LADDER_OF.get(counted)
    if ladder is None or len(value) > _LONGEST:
        return value, unit
    least = Decimal(value) * ladder[counted]
    best = max((u for u in ladder if least % ladder[u] == 0), key=ladder.__getitem__, default=next(iter(ladder)))
    return decimal_text(least / ladder[best]), f"{best}{per}{of}"


def decimal_text(value: Decimal) -> str:
    """One spelling of a number: 5, 5.0 and 5e0 agree."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def may_agree(a: str, b: str) -> bool:
    """Whether two amounts may be one, of which a side leaves the unit, or what it is per, unsaid: 14, 2 weeks."""
    (value, _, unit), (other, _, other_unit) = a.partition(" "), b.partition(" ")
    if unit and other_unit:
        return value == other and unit.partition(" per ")[0] == other_unit.partition(" per ")[0]
    return other in _in_every_unit(value, unit) or value in _in_every_unit(other, other_unit)


def _in_every_unit(value: str, unit: str) -> list[str]:
    ladder = _LADDER_OF.get(unit, {})
    return [value, *(decimal_text(Decimal(value) * ladder[unit] / size) for size in ladder.values())]


__all__ = ["attach_units", "decimal_text", "may_agree"]
