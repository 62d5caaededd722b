"""What is compared as written or by value: URLs, code, quotations, identifiers, versions, amounts."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from service.policy.guards.lexicon import SCALES, UNITS
from service.policy.guards.quantities import decimal_text

_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
# a = b - c, 2 * 3 < 7: operands with operators between them; a dash alone or a slash alone is prose.
_EXPRESSION = re.compile(r"[\w.()]+(?:\s+[-/]\s+[\w.()]+)*(?:\s*[=+*^<>]=?\s*[\w.()]+(?:\s+[-/]\s+[\w.()]+)*)+")
_CODED = frozenset("([&|/<>*=+:")
_OPERATORS = frozenset("=+*^<>")
# f(a, b), x[0][1], ++i, a lone operator; a name as f(), a plural as in word(s) and an aside as in sea(salt) are prose.
_CALL = re.compile(
    r"(?<![\w.])[A-Za-z_][\w.]*'*\((?!(?:s|es|ren)\))"
    r"(?:[^\s(),]{1,2}|(?=[^\s(),]*[\d_.\"'=])[^\s(),]+|[^(),]*(?:,[^(),]*)+)\)"
    r"|(?<!\w)\w+(?:\[[^\]\s]{0,80}\]){1,4}|\+\+\w+"
    r"|(?<!\S)(?:&&|\|\||::|//|\.\.|<<|>>|\*\*|->|=>|:=|!=|===?|<=|>=)(?!\S)"
)
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+", re.IGNORECASE)
# What a request to work on a text has after a colon is that text.
_WORK = re.compile(
    r"\b(?:translat|spell|correct|proofread|punctuat|rewrit|rephras|paraphras|convert|encod|decod|capitali[sz]|count"
    r"|pronounc|conjugat|rhym|revers|repeat|encrypt|decrypt|hash|uppercase|lowercase|fix|complet|classif|pars)\w*\b"
    r"[^:\n]{0,80}:\s+(?P<text>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTE = re.compile(r"\"([^\"\n]{1,400})\"|(?<!\w)'([^'\n]{1,400})'(?!\w)")

_AMOUNT = re.compile(
    r"(?P<currency>us\$|[$€£¥₹]|usd|eur|gbp)?(?P<sign>-)?(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?P<tail>%|°[cf]?|[a-zμ]{1,12}[23]?|[$€£¥])?",
    re.IGNORECASE,
)
_VERSION = re.compile(r"v\d+(?:\.\d+)*[\w.-]*|\d+(?:\.\d+){2,}[\w-]*|\d+(?:\.(?:\d+|x))+", re.IGNORECASE)
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_LONG_DIGITS = 7
# A mark as A-, a form of dates as DD/MM/YY.
_MARK = re.compile(r"[A-Z]{1,2}[+-]|[DMYHS]{1,4}(?:[-/.:][DMYHS]{1,4})+|[dmyhs]{1,4}(?:[-/.:][dmyhs]{1,4})+")
_HUMP = re.compile(r"[a-z][A-Z]")
_ABBREVIATION = re.compile(r"(?:[A-Za-z]\.){1,4}[A-Za-z]?")
_RUN_ON = re.compile(r"[a-z]{2,}\.[A-Z][a-z]*")


class Literal(NamedTuple):
    """A chunk of text with its kind (`number`, `version`, `identifier`) and comparable value."""

    kind: str
    value: str
    unit: str = ""


def cut_code(text: str) -> tuple[str, list[str], list[str]]:
    """`(text, code, URLs)`: code spans and URLs are cut out, expressions stay in the text as well."""
    code: list[str] = []
    urls: list[str] = []
    if "`" in text:
        code = [span.strip("`").strip() for span in _CODE.findall(text)]
        text = _CODE.sub(" ", text)
    if not _OPERATORS.isdisjoint(text):
        code += ["".join(found.split()) for found in _EXPRESSION.findall(text)]
    if not _CODED.isdisjoint(text) or ".." in text:
        code += ["".join(found.split()) for found in _CALL.findall(text)]
    if "://" in text or "www." in text.lower():
        urls = [_plain_url(url) for url in _URL.findall(text)]
        text = _URL.sub(" ", text)
    return text, code, urls


def _plain_url(url: str) -> str:
    url = url.rstrip(".,;:!?/")
    scheme, _, rest = url.rpartition("://")
    host, slash, path = rest.partition("/")
    return host.lower().removeprefix("www.") + slash + path if scheme or host else url


def quotations(text: str) -> list[str]:
    """The quoted strings in their order, as written, and the text that is to be worked on."""
    quoted = [double or single for double, single in _QUOTE.findall(text)] if '"' in text or "'" in text else []
    worked_on = _WORK.search(text) if ":" in text else None
    return [part.strip() for part in (*quoted, *([worked_on["text"]] if worked_on else []))]


def literal(chunk: str, *, after_name: bool) -> Literal | None:
    """The literal that a chunk without surrounding punctuation is, or None for a plain word.

    `after_name`: the word before is a name or "version", so that a decimal is a version (3.10 is not 3.1).
    """
    if _FLAG.fullmatch(chunk):
        return Literal("identifier", chunk)
    if any(map(str.isdigit, chunk)):
        return _with_digits(chunk, after_name=after_name)
    return Literal("identifier", chunk) if _looks_coded(chunk) else None


def _with_digits(chunk: str, *, after_name: bool) -> Literal:
    if (after_name and "." in chunk and _VERSION.fullmatch(chunk)) or _strictly_version(chunk):
        return Literal("version", chunk.lower().removeprefix("v"))
    return _amount(chunk.lower()) or Literal("identifier", chunk.lstrip("#"))


def _strictly_version(chunk: str) -> bool:
    return bool(_VERSION.fullmatch(chunk)) and (chunk[0] in "vV" or chunk.count(".") >= 2)


def _amount(chunk: str) -> Literal | None:
    found = _AMOUNT.fullmatch(chunk.lstrip("#").rstrip("+"))
    if not found or _is_code_number(found["digits"]):
        return None
    tail, currency = found["tail"] or "", found["currency"] or ""
    scale = SCALES.get(tail, 1) if tail not in UNITS else 1
    if currency and tail in {"m", "b"}:
        scale = {"m": 10**6, "b": 10**9}[tail]
    elif tail and scale == 1 and tail not in UNITS:
        return None
    try:
        value = Decimal((found["sign"] or "") + found["digits"].replace(",", "")) * scale
    except InvalidOperation:
        return None
    return Literal("number", decimal_text(value), UNITS.get(currency or (tail if scale == 1 else ""), ""))


def _is_code_number(digits: str) -> bool:
    """Leading zeros and long runs of digits number things, they do not count them."""
    plain = digits.isdigit()
    return plain and ((digits[0] == "0" and len(digits) > 1) or len(digits) >= _LONG_DIGITS)


def _looks_coded(chunk: str) -> bool:
    """Whether a chunk without digits is a name in code: a_b, notes.txt, base64, an address, the mark A-."""
    if _MARK.fullmatch(chunk) or "_" in chunk or "@" in chunk or "\\" in chunk or chunk.endswith("="):
        return True
    if "." in chunk.strip("."):
        return not _ABBREVIATION.fullmatch(chunk) and not _RUN_ON.fullmatch(chunk)
    return len(chunk) >= 8 and len(_HUMP.findall(chunk)) >= 2


__all__ = ["Literal", "cut_code", "literal", "quotations"]
