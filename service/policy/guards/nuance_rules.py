"""Guards over the small words that make another request of the same matter: how to answer, how many, how much, must."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import MappingProxyType

from service.policy.guards.contrast import MOSTLY, NEARLY, Contrast, Finding, Outcome, apart, between, show
from service.policy.guards.features import Features
from service.policy.guards.lexicon import ORDERS
from service.policy.guards.questions import WHETHER
from service.policy.guards.token import word
from service.policy.guards.words import stem

_MANNERS = re.compile(
    r"\b(?:"
    r"(?P<short>brief|briefly|concise|concisely|succinct|succinctly|tersely|in short|in a nutshell|tl ?dr"
    r"|in (?:a )?few words|keep it short|short (?:answer|explanation|version|summary|overview|description))"
    r"|(?P<long>in (?:more |full |great |greater )?details?|detailed|thorough|thoroughly|in depth|comprehensively"
    r"|extensively|at length|long (?:answer|explanation|version|summary|overview|description))"
    r"|(?P<bare>(?:just|only) the (?:number|name|answer|result|code|date|year)"
    r"|(?:no|without) (?:an |any )?explanations?)"
    r"|(?P<steps>step by step|stepwise|show (?:your|the) (?:work|working|steps|reasoning))"
    r"|(?P<examples>(?:with|give|giving|include|including|add) (?:an |some |me |a few )?examples?)"
    r"|(?P<verdict>yes or no)"
    r"|(?P<plain>in (?:very )?(?:simple|plain|easy|everyday|layman|laymans) (?:terms?|words?|english|language)|eli5)"
    r"|in (?:a |one |a single |only one )?(?P<unit>sentence|paragraph|word)"
    r"|(?:(?<!such )as|in) (?:an? |the |valid |plain )*(?P<format>json|yaml|xml|csv)"
    r"|as (?:an? )?(?P<layout>table|list|bulleted list|numbered list|poem|letter)"
    r"|in (?:all )?(?P<letters>uppercase|lowercase|upper case|lower case|capital letters|capitals|caps|rhyme|verse)"
    r")\b"
)
_POLITE = frozenset({"please", "kindly", "and", "also", "but"})


def manner(c: Contrast) -> Finding:
    """How the answer is wanted, where it is not said with the same sense on both sides: briefly, as JSON, in one
    sentence; or an order about it that one side has alone."""
    if c.reworded == ([], []):
        return None
    left, right = apart(_manners(c.query.cased), _manners(c.stored.cased))
    if left or right:
        return Outcome.GRAY, show(left, right)
    _, here, there = between(c.query_words, c.stored_words)
    order = _order(here) if not there else _order(there) if not here else ""
    return (Outcome.GRAY, f"an order to {order}") if order else None


@lru_cache(maxsize=8192)
def _manners(cased: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({_manner(found) for found in _MANNERS.finditer(" ".join(cased).lower())}))


def _manner(found: re.Match[str]) -> str:
    kind = found.lastgroup or ""
    return found[kind] if kind in {"unit", "format", "layout", "letters"} else kind


def _order(words: Sequence[str]) -> str:
    """The verb of an order that says more than that an answer is asked for."""
    at = next((i for i, w in enumerate(words) if w not in _POLITE), len(words))
    if at == len(words) or words[at] not in ORDERS:
        return ""
    return words[at] if any(word(w).role == "content" for w in words[at + 1 :]) else ""


_LESS, _MORE, _FROM, _WITHIN = "at most", "at least", "from", "within"
_BOUNDS = MappingProxyType(
    dict.fromkeys(["under", "below", "until", "till", "before", "up to", "at most"], _LESS)
    | {f"{stem(w)} than": _LESS for w in ("less", "fewer", "cheaper", "earlier", "lower", "smaller", "shorter")}
    | dict.fromkeys(["over", "above", "since", "after", "at least"], _MORE)
    | {f"{stem(w)} than": _MORE for w in ("more", "greater", "later", "higher", "larger", "bigger", "longer")}
    | {"from": _FROM, "within": _WITHIN}
)
_AFTER = MappingProxyType(
    dict.fromkeys(map(stem, ["more", "over", "above", "older", "later", "higher", "up"]), _MORE)
    | dict.fromkeys(map(stem, ["less", "under", "below", "younger", "earlier", "fewer", "lower"]), _LESS)
)
_TURNED = MappingProxyType({_LESS: _MORE, _MORE: _LESS})
_LITERALS = frozenset({"#", "@"})  # the sigils of numbers and dates
_OPPOSED = (frozenset({_LESS, _WITHIN}), frozenset({_MORE, _FROM}))


def bounds(c: Contrast) -> Finding:
    """One number or date as a bound: the most here and the least there, or the bound here and the value there."""
    shared = {w for w in c.query.content if w[0] in _LITERALS}.intersection(c.stored.content)
    if not shared or (c.reworded == ([], []) and c.query.frame == c.stored.frame):
        return None
    a, b = dict(_bounds(c.query)), dict(_bounds(c.stored))
    for literal in shared & a.keys() & b.keys():
        here, there = a[literal], b[literal]
        if any(here in low and there in high for low, high in (_OPPOSED, _OPPOSED[::-1])):
            return Outcome.BLOCK, f"{here} {literal[1:]} ≠ {there} {literal[1:]}"
        if bool(here) != bool(there) and {here, there} & _TURNED.keys():
            return Outcome.GRAY, f"{here} {literal[1:]} ≠ {there} {literal[1:]}"
    return None


def _bounds(features: Features) -> Iterator[tuple[str, str]]:
    """Each number and date with the bound that it is, empty for none. A range from here to there is none."""
    content = iter(features.content)
    said = [next(content, "") if w == "_" else w for w in features.frame]
    ranged = "from" in said and not {"to", "until", "till"}.isdisjoint(said)
    for i, item in enumerate(said):
        if item[:1] in _LITERALS:
            yield item, "" if ranged else _bound(said, i)


def _bound(said: Sequence[str], i: int) -> str:
    before = said[max(0, i - 3) : i]
    found = _BOUNDS.get(" ".join(before[-2:])) or _BOUNDS.get(before[-1] if before else "", "")
    if found in _TURNED and len(before) == 3 and before[-1] == "than" and before[0] in {"no", "not"}:
        found = _TURNED[found]
    if not found and said[i][0] == "#" and len(said) > i + 2 and said[i + 1] in {"or", "and"}:
        found = _AFTER.get(said[i + 2], "")
    return found


_QUANTIFIERS = MappingProxyType(
    dict.fromkeys(["all", "every", "each"], "all")
    | dict.fromkeys(["some", "several"], "some")
    | {"any": "any", "one": "one", "most": "most", "none": "none"}
)
_ALONE = frozenset({"only", "solely", "exclusively"})


def quantifiers(c: Contrast) -> Finding:
    """Of how many it is asked: all birds, some birds; and whether of them alone."""
    here, there = c.reworded
    if c.alike < MOSTLY or not (here or there):
        return None
    if c.alike >= NEARLY and _ALONE.isdisjoint(here) != _ALONE.isdisjoint(there):
        return Outcome.GRAY, "only"
    a, b = ({_QUANTIFIERS[w] for w in side if w in _QUANTIFIERS} for side in (here, there))
    if not a or not b or a & b or not ({"all", "none"} & (a | b) or a | b == {"some", "most"}):
        return None
    whether = c.query.question == c.stored.question == (WHETHER,)
    return (Outcome.GRAY, show(sorted(a), sorted(b))) if whether or "any" not in a | b else None


_MODALS = MappingProxyType(
    dict.fromkeys(["can", "could", "may", "might"], "may") | {"must": "must", "should": "should", "ought": "should"}
)
_ABLE = frozenset({"i", "we", "able", "possible"})  # will I be able to, can I
_DUTY = re.compile(r"\b(?:do|does|did|will) (?:\w+ ){1,3}(?:have|need) to\b")


def modality(c: Contrast) -> Finding:
    """What may be done here, must be done there. What should be done is asked for in the words of what can be, too,
    unless the question is whether."""
    here, there = c.reworded
    if not (here or there) or not c.query.question or c.query.question != c.stored.question:
        return None
    a, b = _modals(here, c.query_words), _modals(there, c.stored_words)
    whether = c.query.question == (WHETHER,)
    if whether and _ABLE.isdisjoint(c.query_words + c.stored_words):
        a, b = ({*found, *({"will"} & {*said})} for found, said in ((a, here), (b, there)))
    if not a or not b or a & b:
        return None
    return (Outcome.GRAY, show(sorted(a), sorted(b))) if whether or "should" not in a | b else None


def _modals(own: Sequence[str], words: Sequence[str]) -> set[str]:
    found = {_MODALS[w] for w in own if w in _MODALS}
    return found | {"must"} if "to" in own and _DUTY.search(" ".join(words)) else found


__all__ = ["bounds", "manner", "modality", "quantifiers"]
