"""Guards over relations: direction, word order, degree and tense."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from types import MappingProxyType

from service.policy.guards import lexicon as lx
from service.policy.guards.contrast import MOSTLY, NEARLY, Contrast, Finding, Outcome, apart, show
from service.policy.guards.features import Features
from service.policy.guards.synonyms import synonymous
from service.policy.guards.words import stem

_REVERSED = frozenset(
    pair
    for a, b in (
        ("from", "to"),
        ("before", "after"),
        ("with", "without"),
        ("over", "under"),
        ("above", "below"),
    )
    for pair in ((a, b), (b, a))
)
_BEING = frozenset({"be", "am", "is", "are", "was", "were", "been", "being"})
_PAST = MappingProxyType(
    {"was": ("is", "will"), "were": ("are", "will"), "did": ("do", "does", "will"), "had": ("has", "have")}
)
# What happens to those who ask is told in any tense.
_OWN = frozenset({"i", "my", "me", "we", "our", "us"})
_CROSSING = frozenset({"from", "than", "before", "after", "behind"})
_ONWARD = frozenset({"to", "into", "onto"})
_SYMMETRIC = frozenset(map(stem, lx.SYMMETRIC))
# Verbs whose past participle is their dictionary form.
_UNCHANGED = re.compile(
    r"(re|pre|up|off|out|over|in|fore|broad|type)?(bet|bid|burst|cast|cut|hit|hurt|put|read|set|shed|shut|split|spread)"
)


def direction(c: Contrast) -> Finding:
    """The same word as source here and as target there, two words that changed places in one relation, or one relation
    in another's place."""
    return _crossed(c) or _related_otherwise(c)


def _related_otherwise(c: Contrast) -> Finding:
    """One word of place, time or side for another, in the same words otherwise: behind the dam, below the dam."""
    if len(c.reworded[0]) != 1 or len(c.reworded[1]) != 1:
        return None
    both = {*c.reworded[0], *c.reworded[1]}
    if not both <= lx.RELATIONS or both.isdisjoint(lx.PLACED) or any(both <= group for group in lx.PLACED_ALIKE):
        return None
    return Outcome.GRAY, show(*c.reworded)


def _crossed(c: Contrast) -> Finding:
    if c.query.roles == c.stored.roles or not c.query.roles or not c.stored.roles or c.alike < MOSTLY:
        return None
    a, b = ([tuple(r.split(":", 1)) for r in side] for side in (c.query.roles, c.stored.roles))
    of_query, of_stored = set(c.query.content), set(c.stored.content)
    for relation, word in a:
        for other_relation, other in b:
            reversed_ = word == other and (relation, other_relation) in _REVERSED
            crossed = relation == other_relation and word != other and word in of_stored and other in of_query
            if reversed_ or (crossed and relation in _CROSSING and c.alike >= NEARLY and not _listed(c, relation)):
                return Outcome.BLOCK, f"{relation} {word} ≠ {other_relation} {other}"
    return None


def _listed(c: Contrast, relation: str) -> bool:
    """Whether a side uses the relation more than once, so that two fillers need not contradict each other."""
    return any(sum(r.startswith(relation + ":") for r in side) > 1 for side in (c.query.roles, c.stored.roles))


def order(c: Contrast) -> Finding:
    """The same words in another order around the same relations: who did it to whom."""
    if c.query_only or c.stored_only or c.query.content == c.stored.content:
        return _passive(c)
    if recounted := _recounted(c):
        return Outcome.BLOCK, recounted
    same_frame = c.query.frame == c.stored.frame or _transposed(c)
    if not same_frame or _without_adverbs(c.query) == _without_adverbs(c.stored):
        return None
    moved = [i for i, (a, b) in enumerate(zip(c.query.content, c.stored.content, strict=True)) if a != b]
    if _listed_only(c, moved) or _SYMMETRIC.intersection(c.query.content):
        return None
    passive = _object_first(c.query, c.stored, moved) or _object_first(c.stored, c.query, moved)
    shown = show([c.query.content[i] for i in moved], [c.stored.content[i] for i in moved])
    return (Outcome.GRAY if passive else Outcome.BLOCK), shown


def _transposed(c: Contrast) -> bool:
    """Whether what stands before one word of direction and after it changed places, however many words each has."""
    here, there = ([w for w in side.frame if w != "_"] for side in (c.query, c.stored))
    return here == there and c.query.roles != c.stored.roles and sum(w in _ONWARD for w in here) == 1


def _without_adverbs(features: Features) -> list[str]:
    """Adverbs of manner stand where they like: clean it properly, properly clean it."""
    return [word for word in features.content if not word.endswith("ly")]


def _object_first(active: Features, passive: Features, moved: Sequence[int]) -> bool:
    """Whether a verb stands before its object on one side, and as participle after it on the other: bake bread, how is
    bread baked, get bread baked."""
    span = slice(moved[0], moved[-1] + 1)
    verb, *objects = active.content[span]
    if [*objects, verb] != list(passive.content[span]):
        return False
    words, others = ([w.lower() for w in side.cased] for side in (passive, active))
    forms, plain = ({w for w in side if stem(w) == verb} for side in (words, others))
    participles = {w for w in forms if (w not in plain and not w.endswith("ing")) or _UNCHANGED.fullmatch(w)}
    return bool(participles) and not lx.PASSIVE_AUXILIARIES.isdisjoint(words)


def _recounted(c: Contrast) -> str:
    """A number that counts one thing of a list here and another there: two adults and one child."""
    if not lx.COORDINATORS.intersection(c.query.frame) or not lx.COORDINATORS.intersection(c.stored.frame):
        return ""
    here, there = _counted(c.query.content), _counted(c.stored.content)
    moved = next((n for n in here if n in there and here[n] != there[n]), "")
    return f"{moved} {here[moved]} ≠ {moved} {there[moved]}" if moved else ""


def _counted(content: Sequence[str]) -> dict[str, str]:
    """What each number stands before, other numbers left out."""
    found, noun = {}, ""
    for word in reversed(content):
        if word[0] != "#":
            noun = word
        elif noun:
            found[word] = noun
    return found


def _coordinated(frame: Sequence[str], first: int, last: int) -> bool:
    """Whether only "and" and "or" stand between the content words `first` to `last`: their order means nothing."""
    at = [i for i, word in enumerate(frame) if word == "_"]
    between = [w for w in frame[at[first] : at[last] + 1] if w != "_"]
    return bool(between) and all(w in lx.COORDINATORS for w in between)


def _listed_only(c: Contrast, moved: Sequence[int]) -> bool:
    """Whether what changed places are items of a list, and not told of them: a red hat and a blue scarf, the dog is
    brown and the cat is black."""
    if not _coordinated(c.query.frame, moved[0], moved[-1]):
        return False
    parted = [i for i, (a, b) in enumerate(zip(c.query_words, c.stored_words, strict=False)) if a != b]
    if parted and not lx.PASSIVE_AUXILIARIES.isdisjoint(c.query_words[parted[0] : parted[-1]]):
        return False
    one, other = (_of_what(c.query, i) for i in (moved[0], moved[-1]))
    return len(moved) != 2 or len(one) != len(other) or one == other or c.query.content[moved[0]][0] == "#"


def _of_what(features: Features, i: int) -> tuple[str, ...]:
    """The content words between the content word `i` and the next relation: hat after red."""
    frame = features.frame
    at = [place for place, word in enumerate(frame) if word == "_"][i] + 1
    size = next((n for n, word in enumerate(frame[at:]) if word != "_"), len(frame) - at)
    return features.content[i + 1 : i + 1 + size]


def _passive(c: Contrast) -> Finding:
    """Active here and passive there with the words in one order: doer and done-to changed places. Without a doer that
    is named it may be one event: it closed, it was closed."""
    if c.query.content != c.stored.content:
        return None
    by_here, by_there = (any(r.startswith("by:") for r in side.roles) for side in (c.query, c.stored))
    if by_here != by_there and len(c.query.content) > 1:
        return Outcome.BLOCK, "active ≠ passive, same order"
    turned = _suffered(c.query, c.stored) or _suffered(c.stored, c.query)
    return (Outcome.GRAY, f"{turned} ≠ {turned} (passive)") if turned else None


def _suffered(active: Features, passive: Features) -> str:
    """What is done on one side, and done to somebody or something on the other: who eats, who is eaten."""
    words, others = ([w.lower() for w in side.cased] for side in (passive, active))
    if active.frame != passive.frame or not lx.PASSIVE_AUXILIARIES.isdisjoint(others):
        return ""
    done = (stem(w) for be, w in pairwise(words) if be in _BEING and (w.endswith("ed") or w in lx.IRREGULAR))
    return next((word for word in done if word in active.content), "")


def comparison(c: Contrast) -> Finding:
    a, b = c.query.degrees, c.stored.degrees
    if a == b:
        turned = _measure(c.query, c.stored) or _measure(c.stored, c.query) if c.alike >= NEARLY else ""
        return (Outcome.BLOCK, f"than {turned} ≠ {turned}") if turned else None
    left, right = apart(a, b)
    if left and right:
        alike = all(_same_degree(x, y) for x in left for y in right)
        return None if alike else (Outcome.BLOCK, show(left, right))
    bases = {item.split(":")[0] for item in left or right if ":" in item}
    both = bases & set(c.query.content) & set(c.stored.content)
    return (Outcome.GRAY, show(left, right)) if both else None


def _measure(named: Features, other: Features) -> str:
    """What one side compares with, and the other with a pronoun: is she taller than Ben, is Ben taller than she."""
    if "than" not in other.frame or any(role.startswith("than:") for role in other.roles):
        return ""
    measures = (role.removeprefix("than:") for role in named.roles if role.startswith("than:"))
    return next((word for word in measures if word in other.content), "")


def _same_degree(a: str, b: str) -> bool:
    """Whether two words stand in the same degree of the same sense: largest, biggest."""
    (word, _, degree), (other, _, other_degree) = a.partition(":"), b.partition(":")
    return degree == other_degree and synonymous(word, other)


def aspect(c: Contrast) -> Finding:
    """What is, against what was once or is becoming, in the same words otherwise."""
    a, b = c.query.aspects, c.stored.aspects
    if a != b and {*c.query_only, *c.stored_only} <= {*a, *b, "use"}:
        return Outcome.GRAY, show(a, b)
    here, there = c.reworded
    if len(here) != 1 or len(there) != 1 or not c.query.question or not _OWN.isdisjoint(c.query_words):
        return None
    turned = _is_past_of(here[0], there[0]) or _is_past_of(there[0], here[0])
    return (Outcome.GRAY, show(here, there)) if turned else None


def _is_past_of(past: str, present: str) -> bool:
    """Whether two forms of one verb differ in tense: lived, live; was, is. Not a participle: both may be passive."""
    if past in _PAST:
        return present in _PAST[past]
    root = stem(past)
    if present.endswith(("ed", "ing")) or present in lx.IRREGULAR or stem(present) != root:
        return False
    return past.endswith("ed") or (past in lx.IRREGULAR and not past.endswith("ing"))
