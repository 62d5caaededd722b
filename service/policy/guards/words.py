"""Words: one spelling, inflection, kinship."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from service.policy.guards import lexicon as lx

_SPELLINGS = str.maketrans(
    dict.fromkeys("\u2019\u2018\u02bc", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f\u300a\u300b", '"')
    | dict.fromkeys("\u2013\u2014\u2212", "-")
)
# A whole number runs into the fraction after it when that is decomposed.
_MIXED_FRACTION = re.compile(r"(?<=\d)(?=[\u00bc-\u00be\u2150-\u215e])")


def normalise(text: str) -> str:
    """One spelling for compatible characters, quotation marks and dashes."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _MIXED_FRACTION.sub(" ", text))
    return text.translate(_SPELLINGS)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The word without its inflection (plural, tense, degree); derivation is kept, since it changes the sense."""
    word = lx.IRREGULAR.get(word, word)
    if len(word) <= 3 or not word.isascii():
        return word
    return _strip_e(degree(word)[0] or _uninflect(word))


def _uninflect(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("es") and word[-4:-2] in {"ch", "sh", "ss", "xx"}:
        return word[:-2]
    if word.endswith("s") and word[-2] not in "su":
        return word[:-1]
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for suffix in ("ing", "ed"):
        base = word.removesuffix(suffix)
        if base != word and len(base) >= 3 and any(v in base for v in "aeiouy"):
            return base[:-1] if _doubled(base) else base
    return word


def _doubled(base: str) -> bool:
    """Whether the last letter was doubled by the suffix: stopped, cancelled; not filled, missed."""
    return base[-1] == base[-2] and base[-1] not in "sz" and (base[-1] != "l" or len(base) > 5)


def _strip_e(word: str) -> str:
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


@lru_cache(maxsize=16384)
def degree(word: str) -> tuple[str | None, str | None]:
    """`(base, "comparative" | "superlative")` of a common gradable adjective, else `(None, None)`."""
    for suffix, name in (("est", "superlative"), ("er", "comparative")):
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            for base in (rest, rest + "e", rest[:-1], rest[:-1] + "y"):
                if base in lx.GRADABLE:
                    return base, name
    return None, None


@lru_cache(maxsize=65536)
def related(a: str, b: str) -> bool:
    """Whether two stems are one word in another derivation (renew, renewal) or with one letter mistyped."""
    if a == b or a.replace("our", "or") == b.replace("our", "or"):
        return True
    shared = _common_prefix(a, b)
    if shared >= 4 and _derivation(a[shared:]) and _derivation(b[shared:]):
        return True
    return min(len(a), len(b)) >= 6 and a[0] == b[0] and a.isalpha() and b.isalpha() and _one_edit(a, b)


def _derivation(rest: str) -> bool:
    return not rest or rest in lx.DERIVED or rest in {"e", "i"}


def _common_prefix(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _one_edit(a: str, b: str) -> bool:
    """One letter added or left out before the last, changed, or two neighbours exchanged."""
    if abs(len(a) - len(b)) > 1:
        return False
    i = _common_prefix(a, b)
    if len(a) == len(b):
        return a[i + 1 :] == b[i + 1 :] or (a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :])
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return i < len(shorter) and longer[i + 1 :] == shorter[i:]


__all__ = ["degree", "normalise", "related", "stem"]
