"""Which scripts a text is written in, and which an embedder can read."""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType

_SCRIPTS = (
    ("Latin", "A-Za-z\u00c0-\u024f\u1e00-\u1eff"),
    ("Han", "㐀-䶿一-鿿"),
    ("Kana", "぀-ヿ"),
    ("Hangul", "ᄀ-ᇿ가-힯"),
    ("Cyrillic", "Ѐ-ԯ"),
    ("Greek", "Ͱ-Ͽ"),
    ("Arabic", "؀-ۿݐ-ݿ"),
    ("Hebrew", "֐-׿"),
    ("Devanagari", "ऀ-ॿ"),
    ("Thai", "฀-๿"),
)
_SCRIPT_PATTERNS = tuple((name, re.compile(f"[{span}]")) for name, span in _SCRIPTS)
_LATIN_ONLY = re.compile(r"[\x00-\x7fÀ-ɏ]*")

# Languages whose script is not Latin; every other language is written in Latin letters.
_SCRIPTS_OF = MappingProxyType(
    {
        code: frozenset(names.split())
        for codes, names in (
            ("zh", "Han"),
            ("ja", "Han Kana"),
            ("ko", "Hangul Han"),
            ("el", "Greek"),
            ("he", "Hebrew"),
            ("th", "Thai"),
            ("ru uk bg be mk kk", "Cyrillic"),
            ("sr", "Cyrillic Latin"),
            ("ar fa ur", "Arabic"),
            ("hi mr ne", "Devanagari"),
        )
        for code in codes.split()
    }
)
_LATIN = frozenset({"Latin"})
_FOREIGN_SHARE = 0.1


def scripts(text: str) -> dict[str, int]:
    """How many letters of each known script the text has, those that occur."""
    counts = {name: len(pattern.findall(text)) for name, pattern in _SCRIPT_PATTERNS}
    return {name: count for name, count in counts.items() if count}


def main_script(text: str) -> str | None:
    """The script that most letters are in; None for a text without letters of a known script."""
    if _LATIN_ONLY.fullmatch(text):
        return "Latin" if any(map(str.isalpha, text)) else None
    counts = scripts(text)
    return max(counts, key=counts.__getitem__) if counts else None


def foreign_scripts(text: str, languages: frozenset[str]) -> list[str]:
    """Scripts that hold a good part of the text and that none of the embedder's languages is written in.

    `languages` are ISO 639-1 codes as the embedder declares them; `mul` means that any is welcome.
    """
    if "mul" in languages or _LATIN_ONLY.fullmatch(text):
        return []
    known: set[str] = {"Latin"}.union(*(_SCRIPTS_OF.get(code, _LATIN) for code in languages))
    counts = scripts(unicodedata.normalize("NFKC", text))
    total = sum(counts.values())
    return sorted(name for name, n in counts.items() if name not in known and n > _FOREIGN_SHARE * total)


__all__ = ["foreign_scripts", "main_script", "scripts"]
