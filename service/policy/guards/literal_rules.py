"""Guards over what is compared by value or as written."""

from __future__ import annotations

from collections.abc import Sequence

from service.policy.guards import lexicon as lx
from service.policy.guards.contrast import Contrast, Finding, Outcome, apart, show


def _sets(a: Sequence[str], b: Sequence[str], *, one_sided: Outcome) -> Finding:
    """Block where each side has an item of its own, `one_sided` where only one has."""
    if a == b:
        return None
    left, right = apart(a, b)
    if not left and not right:
        return None
    return (Outcome.BLOCK if left and right else one_sided), show(left, right)


def numbers(c: Contrast) -> Finding:
    found = _sets(c.query.numbers, c.stored.numbers, one_sided=Outcome.GRAY)
    if found and found[0] is Outcome.BLOCK:
        left, right = apart([n.split()[0] for n in c.query.numbers], [n.split()[0] for n in c.stored.numbers])
        bare = any(" " not in n for n in (*c.query.numbers, *c.stored.numbers))
        if not left and not right and bare:
            return Outcome.GRAY, found[1]
    return found


def ordinals(c: Contrast) -> Finding:
    return _sets(c.query.ordinals, c.stored.ordinals, one_sided=Outcome.PASS)


def dates(c: Contrast) -> Finding:
    found = _sets(c.query.dates, c.stored.dates, one_sided=Outcome.GRAY)
    if found and found[0] is Outcome.GRAY and {*c.query.dates, *c.stored.dates} <= lx.MOMENTS:
        return None
    return found


def versions(c: Contrast) -> Finding:
    return _sets(c.query.versions, c.stored.versions, one_sided=Outcome.BLOCK)


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
    return (Outcome.BLOCK, "code differs") if c.query.code != c.stored.code else None


def script(c: Contrast) -> Finding:
    a, b = c.query.script, c.stored.script
    return (Outcome.BLOCK, show(a, b)) if a and b and a != b else None


def language(c: Contrast) -> Finding:
    return _sets(c.query.languages, c.stored.languages, one_sided=Outcome.GRAY)


def letter_case(c: Contrast) -> Finding:
    """Texts that differ in letter case only, in a word that both writers could have capitalised."""
    a, b = c.query.cased, c.stored.cased
    if a == b or len(a) != len(b) or [w.lower() for w in a] != [w.lower() for w in b]:
        return None
    different = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    if a[0][:1].isupper() == b[0][:1].isupper():
        return Outcome.GRAY, show([x for x, _ in different], [y for _, y in different])
    return None
