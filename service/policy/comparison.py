"""Do two answers say the same? By their words in one spelling, or by how near their vectors are."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from service.errors import SemcacheError
from service.identity.canonical import canonical_json, digest
from service.policy.guards.checks import Outcome, check
from service.policy.guards.features import extract

ANSWER_VERSION = 1

# With MiniLM 82 to 87 % of paraphrased statements are at least so near and pass the guards, and 2.3 % of other
# statements about the same thing do (pairs of pararel and of GPTCache's examples).
SAME_MEANING = 0.85

_FENCE = re.compile(r"^\s*(?:```|~~~)")
# Markers are dropped by what stands beside them, without looking for their other half: a product keeps its asterisks.
_EMPHASIS = re.compile(r"(?<![\w*])\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}(?![\w*])")
_HEADING = re.compile(r"^\s*#{1,6}\s+")
_BULLET = re.compile(r"^\s*[*•‣◦\u2013-]\s+")
_TYPOGRAPHY = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011", "''\"\"--", "`")


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says: its words, and its tool calls as names with arguments, which are JSON text as a rule."""

    text: str
    calls: tuple[tuple[str, str], ...] = ()


def answer_key(said: Said) -> bytes:
    """SHA-256 of the normalised answer, 32 bytes: equal for answers that say the same in the same words.

    Spaces, Unicode forms, typographic quotes, Markdown's marks and a last full stop do not count outside of code
    blocks; JSON is compared by value; tool calls by name and arguments, in any order. Upper and lower case count.
    """
    calls = sorted([name, _value(arguments)] for name, arguments in said.calls)
    return digest([ANSWER_VERSION, _value(said.text), calls])


def _value(text: str) -> str:
    """The canonical form of a text that is a JSON object or list, else the normalised text."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return "json " + canonical_json(json.loads(text)).decode()
        except (ValueError, RecursionError, SemcacheError):
            pass
    return "text " + normalised(text)


def normalised(text: str) -> str:
    """The words of a text in one spelling of its form; lines within a fenced code block keep theirs."""
    pieces: list[str] = []
    prose: list[str] = []
    for is_code, line in _lines(text):
        if is_code:
            pieces += [_words(prose), line.rstrip()]
            prose = []
        else:
            prose.append(line)
    pieces.append(_words(prose))
    return "\n".join(piece for piece in pieces if piece).rstrip(" .。")


def alike(first: str, second: str, similarity: float) -> bool:
    """Whether two answers mean the same as far as vectors and guards see. `similarity`: cosine, 0 to 1."""
    if similarity < SAME_MEANING:
        return False
    return all(v.outcome is not Outcome.BLOCK for v in check(extract(first), extract(second)))


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    fenced = False
    for line in unicodedata.normalize("NFC", text).splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        else:
            yield fenced, line


def _words(lines: list[str]) -> str:
    marked = (_BULLET.sub("- ", _HEADING.sub("", line)) for line in lines)
    plain = _EMPHASIS.sub("", "\n".join(marked)).translate(_TYPOGRAPHY)
    return " ".join(plain.split())


__all__ = ["ANSWER_VERSION", "SAME_MEANING", "Said", "alike", "answer_key", "normalised"]
