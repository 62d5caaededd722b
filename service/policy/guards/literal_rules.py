"""Guards over what is compared by value or as written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.policy.guards import lexicon as lx
from service.policy.guards.characters import without_marks
from service.policy.guards.contrast import Contrast, Finding, Outcome, apart, show
from service.policy.guards.dates import is_moment, may_be_one
from service.policy.guards.features import Features
from service.policy.guards.quantities import may_agree

_ENDS = ("last", "final")
_PLACES = (*_ENDS, "next", "previous")


def _sets(a: Sequence[str], b: Sequence[str], *, one_sided: Outcome) -> Finding:
    """Block where each side has an item of its own, `one_sided` where only one has."""
    if a == b:
        return None
    left, right = apart(a, b)
    if not left and not right:
        return None
    return (Outcome.BLOCK if left and right else one_sided), show(left, right)


def numbers(c: Contrast) -> Finding:
    """A number may stand for the ordinal of the other side: Henry VIII, Henry the eighth; or for the version: Llama
    3.1, llama 3.1."""
    if c.query.numbers == c.stored.numbers:
        return None
    left, right = apart(c.query.numbers, c.stored.numbers)
    left, _ = apart(left, apart(c.stored.ordinals, c.query.ordinals)[0])
    right, _ = apart(right, apart(c.query.ordinals, c.stored.ordinals)[0])
    left, right = apart(left, c.stored.versions)[0], apart(right, c.query.versions)[0]
    return _apart(left, right, may_agree)


def _apart(left: Sequence[str], right: Sequence[str], may_be_one: Callable[[str, str], bool]) -> Finding:
    """Gray where only one side has an item of its own, or where each may be one of the other's; block else."""
    if not left and not right:
        return None
    same_count = len(left) == len(right) and all(any(may_be_one(a, b) for b in right) for a in left)
    return (Outcome.GRAY if same_count or not left or not right else Outcome.BLOCK), show(left, right)


def ordinals(c: Contrast) -> Finding:
    if _first_and_last(c.query, c.stored) or _first_and_last(c.stored, c.query):
        return Outcome.BLOCK, "first ≠ last"
    only = [*c.query_only, *c.stored_only]
    alone = only[0] if len(only) == 1 else "#1"
    if alone in _PLACES:
        return Outcome.GRAY, show(c.query_only, c.stored_only)
    return _sets(c.query.ordinals, c.stored.ordinals, one_sided=Outcome.PASS if alone == "#1" else Outcome.GRAY)


def _first_and_last(first: Features, last: Features) -> bool:
    """Whether one word is counted from the start here and from the end there: the first man, the last man."""
    if "1" not in first.ordinals or "1" in last.ordinals:
        return False
    counted = _after("#1", first.content)
    return any(counted == _after(end, last.content) for end in _ENDS if end in last.content)


def _after(word: str, content: Sequence[str]) -> str:
    """The content word after a word, empty at the end."""
    at = content.index(word) + 1
    return content[at] if at < len(content) else ""


def dates(c: Contrast) -> Finding:
    if c.query.dates == c.stored.dates:
        return None
    left, right = apart(c.query.dates, c.stored.dates)
    if not (left and right) and all(map(is_moment, [*c.query.dates, *c.stored.dates])):
        return None
    return _apart(left, right, may_be_one)


def versions(c: Contrast) -> Finding:
    left, right = apart(c.query.versions, c.stored.versions)
    left, right = apart(left, c.stored.numbers)[0], apart(right, c.query.numbers)[0]
    return _sets(left, right, one_sided=Outcome.BLOCK)


def identifiers(c: Contrast) -> Finding:
    a, b = c.query.identifiers, c.stored.identifiers
    if a != b and [i.lower() for i in a] == [i.lower() for i in b] and all(any(map(str.isdigit, i)) for i in a):
        return Outcome.GRAY, show(a, b)
    return _sets(a, b, one_sided=Outcome.BLOCK)


def urls(c: Contrast) -> Finding:
    return _sets(c.query.urls, c.stored.urls, one_sided=Outcome.BLOCK)


def quotes(c: Contrast) -> Finding:
    a, b = c.query.quotes, c.stored.quotes
    if a == b:
        return None
    if a and b:
        return Outcome.BLOCK, show(a, b)
    quoted, other = (a, c.stored) if a else (b, c.query)
    plain = " ".join(other.cased).lower()
    return None if all(q.lower().strip(".?!,") in plain for q in quoted) else (Outcome.GRAY, show(a, b))


def code(c: Contrast) -> Finding:
    """A word that only one side marks as code is the same word."""
    a, b = c.query.code, c.stored.code
    marked, other = (a, c.stored) if a else (b, c.query)
    named = not (a and b) and all(span in other.cased for span in marked)
    return None if a == b or named else (Outcome.BLOCK, "code differs")


def script(c: Contrast) -> Finding:
    a, b = c.query.script, c.stored.script
    return (Outcome.BLOCK, show(a, b)) if a and b and a != b else None


def language(c: Contrast) -> Finding:
    return _sets(c.query.languages, c.stored.languages, one_sided=Outcome.GRAY)


def symbols(c: Contrast) -> Finding:
    a, b = c.query.symbols, c.stored.symbols
    return (Outcome.BLOCK, show(*([ascii(s).strip("'") for s in side] for side in (a, b)))) if a != b else None


def accents(c: Contrast) -> Finding:
    """Words that differ in their accents only: año, ano. A name is often written without."""
    left, right = apart(c.query.accented, c.stored.accented)
    found = [*_unmarked(left, c.query, c.stored, right), *_unmarked(right, c.stored, c.query, left)]
    return (Outcome.BLOCK, show(*zip(*found, strict=True))) if found else None


def _unmarked(words: list[str], own: Features, other: Features, marked: list[str]) -> list[tuple[str, str]]:
    if not words:
        return []
    others = {without_marks(w): w for w in [*map(str.lower, other.cased), *marked]}
    pairs = [(w, others[bare]) for w in words if (bare := without_marks(w)) in others]
    return [(w, v) for w, v in pairs if not (w in own.names and v in other.names)]


def _is_camel(word: str) -> bool:
    """Whether capitals stand inside a word, as in userName."""
    return not word.isupper() and not word[1:].islower()


def letter_case(c: Contrast) -> Finding:
    """A word with a capital on one side only: one that has two senses, or any where nothing else differs."""
    a, b = apart(c.query.inner_words, c.stored.inner_words)
    if not a or not b:
        return None
    same = [w.lower() for w in c.query.cased] == [w.lower() for w in c.stored.cased]
    small = {w.lower(): w for w in b}
    pairs = [(w, small[w.lower()]) for w in a if w.lower() in small and (same or w.lower() in lx.CAPITONYMS)]
    different = [(v, w) for v, w in pairs if v[0].isupper() != w[0].isupper() or _is_camel(v) != _is_camel(w)]
    return (Outcome.GRAY, show(*zip(*different, strict=True))) if different else None
