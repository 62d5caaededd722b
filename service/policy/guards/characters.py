"""Characters that tokenizers drop, strip or take for one another: symbols, what is invisible, and accents."""

from __future__ import annotations

import re
import unicodedata

_PLAIN = re.compile(r"[\t\n\r -~]*")
_BETWEEN_WORDS = re.compile(r"[\s!-/:-@\[-`{-~\u00a1\u00ab\u00b7\u00bb\u00bf\u2010-\u205e\u3000-\u303f]+")
# ASCII and units of measure are read as amounts and expressions; joiners and soft hyphens only shape a word.
_READ_ELSEWHERE = frozenset("$€£¥₹°⁄©®\u00ad\u200c\u200d")  # noqa: RUF001 - NFKC writes ½ with a fraction slash


def symbols(text: str) -> tuple[str, ...]:
    """Emoji, symbols and invisible, private or unassigned characters beyond ASCII, and controls, in their order."""
    if _PLAIN.fullmatch(text):
        return ()
    found = {c for c in set(text) if _is_symbol(c)}
    return tuple(c for c in text if c in found) if found else ()


def _is_symbol(c: str) -> bool:
    category = unicodedata.category(c)
    if c in _READ_ELSEWHERE or c.isspace():
        return False
    return category[0] == "C" or category == "Me" or (category[0] == "S" and not c.isascii())


def accented(text: str) -> tuple[str, ...]:
    """The words that carry a mark, in lower case and in their order."""
    if text.isascii():
        return ()
    words = _BETWEEN_WORDS.split(text.lower())
    return tuple(w for w in words if not w.isascii() and without_marks(w) != unicodedata.normalize("NFD", w))


def without_marks(word: str) -> str:
    """The word's decomposed letters without accents and vowel signs, as uncased tokenizers read it."""
    return "".join(c for c in unicodedata.normalize("NFD", word) if not _is_mark(c))


def _is_mark(c: str) -> bool:
    return unicodedata.category(c) == "Mn" and not "\ufe00" <= c <= "\ufe0f"


__all__ = ["accented", "symbols", "without_marks"]
