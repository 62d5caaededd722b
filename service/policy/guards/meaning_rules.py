"""Guards over words: what is denied, opposite, another name, or put in another's place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from service.policy.guards.contrast import MOSTLY, NEARLY, Contrast, Finding, Outcome, apart, between, show
from service.policy.guards.features import Features
from service.policy.guards.lexicon import (
    ATTRIBUTES,
    FOREIGN_NEGATORS,
    GRADABLE,
    NEGATORS,
    PRESENT,
    PRESENT_CHINESE,
    UNITS,
)
from service.policy.guards.negation import CLAUSE, INABILITY, KNOWLEDGE
from service.policy.guards.opposites import by_affix, opposites_of
from service.policy.guards.questions import AUXILIARIES
from service.policy.guards.synonyms import synonymous
from service.policy.guards.token import word
from service.policy.guards.words import related, stem

_LITERAL = "#@$"
_SLOT = 2
_LINKS = frozenset({"to", "of", "for", "from"})  # log in to, log out of
_SUBJECTS = frozenset({"i", "we", "he", "she", "they", "it"})
_MINE, _YOURS = frozenset({"my", "mine", "me", "myself"}), frozenset({"your", "yours", "you", "yourself"})
# After these stands a title, which is a name in small letters too.
_TITLED = frozenset(["movie", "film", "song", "album", "band", "book", "novel", "show", "series", "musical", "called"])
_ABOUT_WORDS = frozenset(
    map(stem, ["word", "letter", "spell", "spelling", "rhyme", "syllable", "plural", "tense", "pronounce", "translate"])
)
_UNITS = {stem(name): unit for name, unit in UNITS.items()}
_ATTRIBUTES = ATTRIBUTES | GRADABLE - {"new", "great", "nice", "kind"}
_BEFORE_CLAIM = AUXILIARIES | _SUBJECTS
_ABLE = frozenset({("i", "can"), ("we", "can"), ("i", "could"), ("we", "could")})
# Below this share of equal words a negation is another way to tell the same trouble more often than its denial.
_NEGATED_ALIKE = 0.75


def negation(c: Contrast) -> Finding:
    return (
        _denied(c, c.query, c.stored) or _denied(c, c.stored, c.query) or _denied_by_affix(c) or _left_out(c) or _no(c)
    )


def _denied(c: Contrast, negating: Features, other: Features) -> Finding:
    """What one side negates and the other affirms, in nearly the same words otherwise."""
    if not negating.negated or c.alike < _NEGATED_ALIKE:
        return None
    elsewhere = {_stem(head) for head in other.negated}
    heads = {*negating.negated, *other.negated}
    if elsewhere - {_stem(head) for head in negating.negated} and any(head.startswith(CLAUSE) for head in heads):
        return None
    for head in negating.negated:
        denied = _stem(head)
        if head in KNOWLEDGE and c.alike >= NEARLY and _claims(denied, other):
            return Outcome.BLOCK, f"not {denied} ≠ {denied}"
        if head in KNOWLEDGE or denied in elsewhere or denied not in other.content:
            continue
        if not head.startswith(INABILITY) or not _asks_for_help(other) or _claims_ability(other):
            return (Outcome.BLOCK if c.alike >= NEARLY else Outcome.GRAY), f"not {denied} ≠ {denied}"
    return None


def _left_out(c: Contrast) -> Finding:
    """What one side wants to go without, where the other says nothing else: bake bread, bake bread without yeast."""
    if c.query_only and c.stored_only:
        return None
    roles, others = (c.query.roles, c.stored.roles) if c.query_only else (c.stored.roles, c.query.roles)
    lacking = [role for role in roles if role.startswith("without:") and role not in others]
    return (Outcome.GRAY, show(lacking, [])) if lacking else None


def _no(c: Contrast) -> Finding:
    """A negation of another language than English on one side alone."""
    here, there = ([w for w in side if w in FOREIGN_NEGATORS] for side in c.reworded)
    return (Outcome.GRAY, show(here, there)) if bool(here) != bool(there) else None


def _claims(knowledge: str, features: Features) -> bool:
    """Whether a text states that something is known or seen; who asks for it has it not either, unless the question
    is what is known: I know how to do it."""
    if features.negated:
        return False
    words = [word.lower() for word in features.cased]
    claims, subjects = (words[:2], _SUBJECTS) if features.question else (words, _BEFORE_CLAIM)
    return any(stem(word) == knowledge and before in subjects for before, word in pairwise(claims))


def _claims_ability(features: Features) -> bool:
    return tuple(word.lower() for word in features.cased[:2]) in _ABLE


def _stem(head: str) -> str:
    return head.lstrip(INABILITY + CLAUSE)


def _denied_by_affix(c: Contrast) -> Finding:
    if c.far:
        return None
    denied = {_stem(head) for head in (*c.query.negated, *c.stored.negated)}
    for a in c.query_only:
        for b in c.stored_only:
            if by_affix(a, b) and a not in denied and b not in denied:
                return Outcome.BLOCK, show([a], [b])
    return None


def _asks_for_help(features: Features) -> bool:
    """Whether the text asks how to do something, rather than whether something is so."""
    return not features.question or features.question[0] in {"how", "what", "why"}


def opposites(c: Contrast) -> Finding:
    relations, others = ([w for w in side.frame if w != "_"] for side in (c.query, c.stored))
    here, there = apart(relations, others)
    denying, denied = _negators(here), _negators(there)
    stored = {*c.stored_only, *denied}
    negated = bool(denying) != bool(denied)
    for a in [*c.query_only, *denying]:
        for b in opposites_of(a).intersection(stored):
            may_agree = negated and a in c.query_only and b in c.stored_only  # what is not open may be closed
            return (Outcome.GRAY if may_agree else Outcome.BLOCK), show([a], [b])
    here, there = ([w for w in side if w not in _LINKS] for side in (here, there))
    if len(here) == len(there) == 1 and c.alike >= MOSTLY and stem(there[0]) in opposites_of(stem(here[0])):
        return Outcome.BLOCK, show(here, there)
    return None


def _negators(words: Sequence[str]) -> list[str]:
    """Negations that have an opposite of their own: never, always."""
    return [stem(w) for w in words if w in NEGATORS]


def persons(c: Contrast) -> Finding:
    """He here and she there; or a pronoun here where the other text says one of its names again."""
    a, b = c.query.persons, c.stored.persons
    if a == b:
        return _asked_of(c)
    if len(a) == len(b):
        return Outcome.BLOCK, show(a, b)
    named, also = (c.stored_only, c.query.content) if len(a) > len(b) else (c.query_only, c.stored.content)
    repeated = [word for word in named if word in also]
    return (Outcome.GRAY, show(a, b)) if repeated else None


def _asked_of(c: Contrast) -> Finding:
    """What is mine here and yours there; who says you for anybody says it in place of I as well."""
    here, there = map(frozenset, c.reworded)
    owned = (here <= _MINE and there <= _YOURS) or (here <= _YOURS and there <= _MINE)
    return (Outcome.GRAY, show(*c.reworded)) if here and there and owned else None


def names(c: Contrast) -> Finding:
    return _other_names(c) or _in_the_plural(c) or _named_on(c)


def _other_names(c: Contrast) -> Finding:
    if c.query.names == c.stored.names or not c.query.names or not c.stored.names:
        return None
    left = _unknown_names(c.query.names, c.stored, forms=not c.far)
    right = _unknown_names(c.stored.names, c.query, forms=not c.far)
    if left and right and not _initials(left, right):
        return Outcome.BLOCK, show(left, right)
    return None


def _in_the_plural(c: Contrast) -> Finding:
    """One name that is singular here and plural there, where no other word goes with it: Alien, Aliens."""
    here, there = c.reworded
    if len(here) != 1 or len(there) != 1 or here[0] == there[0] or stem(here[0]) != stem(there[0]):
        return None
    at = c.query_words.index(here[0])
    titled = at > 0 and c.query_words[at - 1] in _TITLED
    named = here[0] in c.query.names and there[0] in c.stored.names
    return (Outcome.GRAY, show(here, there)) if named or titled else None


def _named_on(c: Contrast) -> Finding:
    """A name that goes on on one side: the Galaxy, the Galaxy Ultra; Birmingham, Birmingham in Alabama."""
    here, there = c.reworded
    if bool(here) == bool(there):
        return None
    longer = c.query if here else c.stored
    at, *sides = between(c.query_words, c.stored_words)
    added = sides[0] or sides[1]
    goes_on = at > 0 and not longer.cased[at - 1].islower() and word(added[0]).role == "content"
    return (Outcome.GRAY, show(*sides)) if goes_on and all(w in longer.names for w in added) else None


def _unknown_names(names: Sequence[str], other: Features, *, forms: bool) -> list[str]:
    """Names that the other text has not, nor, where that counts, another form of them."""
    words = {stem(w.lower()) for w in other.cased}
    unknown = [n for n in names if stem(n) not in words]
    return [n for n in unknown if not any(related(stem(n), w) for w in words)] if forms else unknown


def _initials(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether one side abbreviates the other: USA, United States of America."""
    for short, long in ((a, b), (b, a)):
        if len(short) == 1 and len(long) > 1 and set(short[0]) >= {word[0] for word in long}:
            return True
    return False


def moment(c: Contrast) -> Finding:
    """Both ask about the moment at which they are asked, and that of the stored one has passed."""
    a = _moments(c.query) if c.query.cased != c.stored.cased else []
    b = _moments(c.stored) if a else []
    if not b:
        return None
    return Outcome.GRAY, show(a, [f"{word} then" for word in b])


def _moments(features: Features) -> list[str]:
    words = [w.lower() for w in features.cased] + list(features.dates)
    written = "".join(features.cased)
    return [w for w in words if w in PRESENT] + [w for w in PRESENT_CHINESE if w in written]


def wording(c: Contrast) -> Finding:
    """Content words of one side replaced by as many unrelated ones in the same frame, or an attribute added. Else
    fewer or more are another way to say it more often than another question: take place, happen. Where words are asked
    about, their forms count; of marks alone nothing is seen, and of long texts with hundreds of other words no more."""
    if c.far:
        return Outcome.GRAY, "hundreds of words differ"
    if not (c.query.content or c.query.cased or c.stored.content or c.stored.cased):
        return Outcome.GRAY, "no words"
    return _other_forms(c) or _qualified(c) or _replaced(c)


def _other_forms(c: Contrast) -> Finding:
    here, there = c.reworded
    if not here or not there or not all(_ABOUT_WORDS & set(side.content) for side in (c.query, c.stored)):
        return None
    stems = [(a, b, stem(a), stem(b)) for a in here for b in there]
    forms = [(a, b) for a, b, x, y in stems if related(x, y) and x not in _ABOUT_WORDS]
    return (Outcome.GRAY, show(*zip(*forms, strict=True))) if forms else None


def _replaced(c: Contrast) -> Finding:
    if not c.shared or _collapsed(c.query.frame) != _collapsed(c.stored.frame):
        return None
    words = [w for w in c.query_only if w[0] not in _LITERAL]
    others = [w for w in c.stored_only if w[0] not in _LITERAL]
    left, right = _unrelated(words, others), _unrelated(others, words)
    return (Outcome.GRAY, show(left, right)) if 0 < len(left) == len(right) <= _SLOT else None


def _qualified(c: Contrast) -> Finding:
    """An attribute that makes another of what follows, in the same words otherwise: the mayor, the deputy mayor."""
    here, there = c.reworded
    added = [*here, *there]
    return (Outcome.GRAY, show(here, there)) if len(added) == 1 and added[0] in _ATTRIBUTES else None


def _collapsed(frame: Sequence[str]) -> list[str]:
    """The frame with neighbouring content words as one slot."""
    return [word for i, word in enumerate(frame) if word != "_" or i == 0 or frame[i - 1] != "_"]


def _unrelated(a: list[str], b: list[str]) -> list[str]:
    return [w for w in a if not any(related(w, v) or synonymous(w, v) or _one_unit(w, v) for v in b)]


def _one_unit(a: str, b: str) -> bool:
    return a in _UNITS and _UNITS[a] == _UNITS.get(b)
