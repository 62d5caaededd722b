"""Text to tokens: words with their grammatical part, and literals with their value."""

from __future__ import annotations

import re

from service.policy.guards import lexicon as lx
from service.policy.guards.dates import calendar, join_dates
from service.policy.guards.literals import literal
from service.policy.guards.numerals import NUMERALS, join_numerals
from service.policy.guards.quantities import attach_units
from service.policy.guards.token import Token, word

_CHUNK = re.compile(r"[㐀-䶿一-鿿]|[^\s㐀-䶿一-鿿]+")
_FREE_OF = re.compile(r"([A-Za-z]+)-free", re.IGNORECASE)
_ELLIPSIS = re.compile(r"\.{2,}|…")
_EDGE = ".,;:!?()[]{}<>\"'*~|…。，、；：！？（）"  # noqa: RUF001 - full-width punctuation is meant
_ENDS = frozenset(".?!:。？！：")  # noqa: RUF001
_PIECE = re.compile(r"[^\W\d_]+(?:\+\+|#)?|\d+(?:\.\d+)?|[$€£¥&%]")
_SPLIT_LITERAL = re.compile(r"(\d+(?:\.\d+)?)[-/]([a-z]+|\d+(?:\.\d+)?)")
_OPERATOR = re.compile(r"[+*^=<>]+")
_SUM = re.compile(r"\d+(?:\.\d+)?(?:[+*^=<>]+\d+(?:\.\d+)?)+")
_ROMAN = re.compile(r"X{0,3}(?:IX|IV|V?I{0,3})")
_ROMAN_LOWER = frozenset({"ii", "iii", "vii", "viii", "xii", "xiii"})
_ROMAN_VALUE = {"I": 1, "V": 5, "X": 10}
_VERSION_WORDS = frozenset({"version", "release", "v"})
_TITLE_SHARE = 0.6


def tokenise(text: str) -> list[Token]:
    """The tokens of a normalised text without code and URLs."""
    tokens = _read(text)
    if any(t.lower in NUMERALS for t in tokens):
        tokens = join_numerals(tokens)
    if any(t.kind == "number" for t in tokens):
        tokens = attach_units(tokens)
    return join_dates(tokens)


def _read(text: str) -> list[Token]:
    tokens: list[Token] = []
    starts = True
    for chunk in _CHUNK.findall(_ELLIPSIS.sub(". ", text)):
        bare = chunk.strip(_EDGE)
        if bare:
            _add(tokens, bare, starts=starts)
        starts = chunk[-1] in _ENDS
    if not text.isupper():
        _mark_acronyms(tokens)
        _mark_letters(tokens)
    if _is_title(tokens):
        for token in tokens:
            token.is_name = False
    return tokens


def _mark_acronyms(tokens: list[Token]) -> None:
    """US and IT among small letters are no pronouns, nor is "the us"."""
    for before, token in zip([None, *tokens], tokens, strict=False):
        capital = len(token.text) > 1 and token.text.isupper() and token.text.isascii()
        country = token.lower == "us" and before is not None and before.lower == "the"
        if token.role == "filler" and (capital or country):
            token.word = token.word._replace(role="content", stem=token.text.upper())
            token.is_name = capital


def _mark_letters(tokens: list[Token]) -> None:
    """A letter that names something is no article: vitamin A, from A to B."""
    capitals = {t.text for t in tokens if len(t.text) == 1 and t.text.isupper() and t.role == "content"}
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.role != "filler" or len(token.text) != 1 or not token.text.isascii() or token.text in "Ii":
            continue
        names = before is not None and token.text.isupper() and (before.role == "content" or bool(capitals))
        names = names or (before is not None and before.lower == "letter")
        names = names or (token.text.isupper() and not token.starts and after is not None and after.text.islower())
        if names or after is None or after.role == "relation":
            token.word = token.word._replace(role="content", stem=token.lower)


def _add(tokens: list[Token], bare: str, *, starts: bool) -> None:
    if not bare:
        return
    if bare.isalpha() or bare.lower() in lx.UNITS:
        _add_word(tokens, bare, starts=starts)
    elif "'" in bare and not any(map(str.isdigit, bare)):
        _add_apostrophe(tokens, bare, starts=starts)
    else:
        _add_mixed(tokens, bare, starts=starts)


def _add_word(tokens: list[Token], text: str, *, starts: bool) -> None:
    lower = text.lower()
    expanded = lx.CONTRACTIONS.get(lower)
    if expanded:
        tokens.extend(Token(part, part, word(part), starts=starts) for part in expanded.split())
        return
    roman = _roman(text, lower) if not starts else ""
    if roman:
        tokens.append(Token(text, lower, word(lower), kind="number", value=roman))
        return
    known = word(lower)
    is_name = known.role == "content" and text[0].isupper() and not starts and len(text) > 1
    tokens.append(Token(text, lower, known, is_name=is_name, starts=starts))


def _add_apostrophe(tokens: list[Token], bare: str, *, starts: bool) -> None:
    lower = bare.lower()
    if lower in lx.CONTRACTIONS:
        _add_word(tokens, lower, starts=starts)
    elif lower.endswith("n't"):
        _add(tokens, bare[:-3], starts=starts)
        _add_word(tokens, "not", starts=False)
    else:
        head, _, tail = bare.rpartition("'")
        verb = lx.CONTRACTED.get(tail.lower(), "") if tail.lower() != "s" or head.lower() in lx.BEFORE_IS else ""
        if tail.lower() not in {*lx.CONTRACTED, "t"}:
            head += tail
        for part in [*_PIECE.findall(head), *verb.split()]:
            _add_word(tokens, part, starts=starts)


def _add_mixed(tokens: list[Token], bare: str, *, starts: bool) -> None:
    date = calendar(bare) if bare[-1].isalnum() else None
    if date:
        tokens.append(Token(bare, bare.lower(), word(""), *date))
        return
    split = _SPLIT_LITERAL.fullmatch(bare)
    if split or _SUM.fullmatch(bare):
        for part in split.groups() if split else _OPERATOR.split(bare):
            _add(tokens, part, starts=starts)
        return
    free_of = _FREE_OF.fullmatch(bare)
    if free_of:
        _add_word(tokens, "without", starts=False)
        _add_word(tokens, free_of[1], starts=False)
        return
    before = tokens[-1] if tokens else None
    after_name = before is not None and (_names_a_product(before))
    found = literal(bare, after_name=after_name)
    if found:
        tokens.append(Token(bare, bare.lower(), word(""), found.kind, found.value, found.unit))
        return
    for part in _PIECE.findall(bare):
        _add_word(tokens, part, starts=starts)


def _names_a_product(token: Token) -> bool:
    return token.is_name or token.lower in _VERSION_WORDS or (token.role == "content" and token.text[:1].isupper())


def _roman(text: str, lower: str) -> str:
    if len(text) < 2 or not ((text.isupper() and _ROMAN.fullmatch(text)) or lower in _ROMAN_LOWER):
        return ""
    digits = [_ROMAN_VALUE[letter] for letter in text.upper()]
    signed = [-d if d < after else d for d, after in zip(digits, [*digits[1:], 0], strict=True)]
    return str(sum(signed))


def _is_title(tokens: list[Token]) -> bool:
    """Whether capitals say nothing, since most words have one."""
    content = [t for t in tokens if t.kind == "word" and t.role == "content"]
    capital = sum(t.text[0].isupper() for t in content)
    small = [t for t in tokens if t.kind == "word" and t.role != "content" and not t.starts and t.lower != "i"]
    return len(content) >= 3 and capital > _TITLE_SHARE * len(content) and all(t.text[0].isupper() for t in small)


__all__ = ["tokenise"]
