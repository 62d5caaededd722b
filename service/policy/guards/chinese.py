"""Chinese numerals, amounts, dates and hours in the spelling that other texts have."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from service.policy.guards import lexicon as lx
from service.policy.guards.spellings import decimal

_DIGITS, _SCALES = "".join(lx.CHINESE_DIGITS), "".join(lx.CHINESE_SCALES)
_WRITTEN = rf"[{_DIGITS}十][{_DIGITS}{_SCALES}]{{0,20}}(?:点[{_DIGITS}]{{1,10}}+(?![刻分]))?"
_NUMERAL = rf"(?:{_WRITTEN}|\d{{1,20}}(?:\.\d{{1,10}})?[万亿]?)"
_UNIT = "|".join(sorted(lx.CHINESE_UNITS, key=len, reverse=True))
_PART_OF_DAY = "凌晨|早上|早晨|上午|中午|下午|傍晚|晚上"
_LATE = frozenset({"下午", "傍晚", "晚上"})
# Numerals that are words more often, but before a unit or an hour.
_WORDS = "一两十"
_TIME_UNIT = "月|小时|星期|礼拜|钟头"
_COUNTED = rf"(?:{_UNIT}|个半?(?:{_TIME_UNIT})|[月日号刻]|点[半钟])"
_LONE = rf"(?:(?<=[午晨])|(?<=[早晚]上))[一两]|(?<![的那这第同某每])一(?={_COUNTED})|[两十](?={_COUNTED})"
# 周一 is Monday; 一周三次 and 每周一次 are how often.
_WEEKDAY = rf"(?<![{_DIGITS}{_SCALES}\d个])(?:周|星期|礼拜)([{''.join(lx.CHINESE_WEEKDAYS)}])(?![次回遍]|天(?!气))"
_YEAR = 4
_HAN = re.compile(r"[\u4e00-\u9fff]")


def spelled(text: str) -> str:
    """三百元 as 300 yuan, 两周 as 2 week, 周三 as wednesday, 百分之二十 as 20%, 下午三点半 as 15:30."""
    if not _HAN.search(text):
        return text
    for pattern, replace in _RULES:
        text = pattern.sub(replace, text)
    return text


def _value(numeral: str) -> str:
    """The digits of a numeral; a last one without its scale is of the next lower: 三百五 is 350."""
    if numeral[0].isdecimal():
        scale = lx.CHINESE_SCALES.get(numeral[-1])
        return decimal(Fraction(numeral[:-1]) * scale) if scale else numeral
    whole, point, part = numeral.partition("点")
    total = section = current = 0
    for char in whole:
        scale = lx.CHINESE_SCALES.get(char, 0)
        if not scale:
            current = current * 10 + lx.CHINESE_DIGITS[char]
        elif scale >= 10**4:
            total, section, current = (total + section + current) * scale, 0, 0
        else:
            section, current = section + (current or 1) * scale, 0
    before = lx.CHINESE_SCALES.get(whole[-2:-1], 0)
    last = current * before // 10 if before >= 100 else current
    return f"{total + section + last}{'.' * bool(point)}{''.join(str(lx.CHINESE_DIGITS[c]) for c in part)}"


def _numeral(found: re.Match[str]) -> str:
    numeral = found[0]
    if (numeral[0].isdecimal() and numeral[-1].isdecimal()) or (numeral in _WORDS and not found["lone"]):
        return numeral
    return f" {_value(numeral)}"


def _fraction(found: re.Match[str]) -> str:
    below, above = (Fraction(_value(n)) for n in found.groups())
    return f" {decimal(above / below * 100)}% " if below else found[0]


def _clock(found: re.Match[str]) -> str:
    part, hour, minute, half, quarters, clock = found.groups()
    if int(hour) > 24 or not (part or minute or half or quarters or clock):
        return found[0]
    at, late = int(hour), part in _LATE or (part == "中午" and int(hour) < 3)
    if part and at <= 12:
        at = at % 12 + (12 if late and not (at == 12 and part == "晚上") else 0)
        at = 12 if part == "中午" and at == 0 else at
    return f" {at % 24:02}:{30 if half else int(quarters or 0) * 15 or int(minute or 0):02} "


def _date(found: re.Match[str]) -> str:
    year, month, day = found.groups()
    name = next((m for n, m in enumerate(dict.fromkeys(lx.MONTHS.values()), 1) if n == int(month)), "")
    return f" {day or ''} {name} {year or ''} " if name else found[0]


def _weekday(found: re.Match[str]) -> str:
    return f" {lx.CHINESE_WEEKDAYS[found[1]]} "


def _amount(found: re.Match[str]) -> str:
    value, unit, of = found.groups()
    if unit == "年" and len(value) == _YEAR:
        return f"{value} "
    rate = f" per {lx.CHINESE_UNITS[of]}" if of else ""
    return f" {value} {lx.CHINESE_UNITS[unit]}{rate} "


_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(_WEEKDAY), _weekday),
    (re.compile(rf"百分之({_NUMERAL})"), lambda found: f" {_value(found[1])}% "),
    (re.compile(rf"({_NUMERAL})分之({_NUMERAL})"), _fraction),
    (re.compile(rf"(?P<lone>{_LONE})|(?!零下){_NUMERAL}"), _numeral),
    (re.compile(r"(?:零下|负) ?(?=\d)"), lambda _: " -"),
    (re.compile(rf"(?:({_PART_OF_DAY}) ?)?(\d{{1,2}})点(?:(\d{{1,2}})分?|(半)|([13])刻)?(钟)?"), _clock),
    (
        re.compile(rf"(?<![\d.])(\d{{1,20}}) ?(?:个半({_TIME_UNIT})|({_UNIT})半)"),
        lambda found: f"{found[1]}.5{found[2] or found[3]}",
    ),
    (re.compile(r"([123])刻钟"), lambda found: f"{int(found[1]) * 15}分钟"),
    (re.compile(rf"半(?:个(?={_TIME_UNIT}))?({_UNIT})"), lambda found: f"0.5{found[1]}"),
    (re.compile(r"(?:(\d{4}) ?年 ?)?(?<![\d.])(\d{1,2}) ?月份?(?: ?(\d{1,2}) ?[日号])?"), _date),
    (re.compile(r"(?<!\d)(\d{2}|\d{4}) ?年代"), lambda found: f" {found[1]}s "),
    (
        re.compile(rf"((?:(?<!\d)-)?\d{{1,20}}(?:\.\d{{1,10}})?) ?(?:个(?={_TIME_UNIT}))?({_UNIT})(?:[/每]({_UNIT}))?"),
        _amount,
    ),
)

__all__ = ["spelled"]
