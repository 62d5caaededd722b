"""What the guards compare, extracted once from a text and kept beside its entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache

from service.policy.guards import chinese, spellings
from service.policy.guards.characters import accented, symbols
from service.policy.guards.literals import cut_code, quotations
from service.policy.guards.negation import negated
from service.policy.guards.questions import question, without_chinese_question
from service.policy.guards.scripts import main_script
from service.policy.guards.token import Token
from service.policy.guards.tokens import tokenise
from service.policy.guards.words import normalise, stem

FEATURES_VERSION = 8
_ASPECTS = frozenset(map(stem, ["become", "former", "formerly", "previously", "onetime"]))
_PASSIVE_BEFORE = frozenset(["is", "are", "was", "were", "be", "been", "being"])
_DEGREE_WORDS = frozenset({"more", "most", "less", "least", "fewer", "fewest"})


@dataclass(frozen=True, slots=True)
class Features:
    """Features of one text, each a tuple of strings; sorted where the order in the text means nothing.

    `content` are the stems of content words in order, `frame` the same sentence with `_` for each of them and
    only the words of relation left. A literal stands in `content` with its sigil: `#` number, `@` date or time,
    `$` identifier or version. `inner_words` are those, as written, whose letter case is the writer's choice: those
    that begin no sentence, of a text that is neither all small nor all capital letters.
    """

    content: tuple[str, ...] = ()
    frame: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    ordinals: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    negated: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    degrees: tuple[str, ...] = ()
    aspects: tuple[str, ...] = ()
    question: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    persons: tuple[str, ...] = ()
    cased: tuple[str, ...] = ()
    inner_words: tuple[str, ...] = ()
    accented: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    script: tuple[str, ...] = ()

    def to_json(self) -> dict[str, list[str]]:
        """An object of arrays of strings, without the empty ones."""
        return {f.name: list(getattr(self, f.name)) for f in fields(self) if getattr(self, f.name)}


def extract(text: str) -> Features:
    """The features of a prompt's semantic text."""
    clean = normalise(text)
    plain, code, urls = cut_code(clean)
    tokens = tokenise(spellings.spelled(chinese.spelled(without_chinese_question(plain))))
    content = [t for t in tokens if t.role == "content"]
    script = main_script(clean)
    return Features(
        content=tuple(t.stem for t in content),
        frame=tuple("_" if t.role == "content" else t.lower for t in tokens if t.role != "filler"),
        numbers=_values(tokens, "number"),
        ordinals=_values(tokens, "ordinal"),
        dates=_values(tokens, "date"),
        versions=_values(tokens, "version"),
        identifiers=_values(tokens, "identifier"),
        urls=tuple(sorted(urls)),
        quotes=tuple(quotations(plain)),
        code=tuple(code),
        negated=tuple(sorted(negated(tokens))),
        roles=tuple(sorted(_roles(tokens))),
        degrees=tuple(sorted(_degrees(tokens))),
        aspects=tuple(sorted(_aspects(tokens))),
        question=question(plain, tokens),
        names=tuple(sorted({t.lower for t in content if t.is_name and t.kind != "date"})),
        languages=tuple(sorted({t.word.language for t in tokens if t.word.language})),
        persons=tuple(t.word.person for t in tokens if t.word.person),
        cased=tuple(t.text for t in tokens if t.kind == "word"),
        inner_words=_inner_words(tokens),
        accented=accented(clean),
        symbols=symbols(clean),
        script=(script,) if script else (),
    )


features_of: Callable[[str], Features] = lru_cache(maxsize=8192)(extract)


def _values(tokens: list[Token], kind: str) -> tuple[str, ...]:
    return tuple(sorted(t.comparable for t in tokens if t.kind == kind))


def _inner_words(tokens: list[Token]) -> tuple[str, ...]:
    words = [t for t in tokens if t.kind == "word" and t.lower != "i"]
    if all(t.text == t.lower for t in words) or all(t.text == t.text.upper() for t in words):
        return ()
    return tuple(t.text for t in words if not t.starts and t.role != "relation")


def _roles(tokens: list[Token]) -> set[str]:
    """`relation:stem` for each content word that directly follows an asymmetric relation, as `from:oslo`."""
    found, relation = set(), ""
    for token in tokens:
        if token.word.asymmetric:
            relation = token.word.asymmetric
        elif token.role == "content" and relation:
            found.add(f"{relation}:{token.stem}")
            relation = ""
        elif token.role == "relation":
            relation = ""
    return found


def _degrees(tokens: list[Token]) -> set[str]:
    graded = set()
    for before, t in zip([None, *tokens], tokens, strict=False):
        if t.word.degree and t.role == "content":
            ranked = before is not None and before.kind == "ordinal" and before.value != "1"  # the second largest
            graded.add(f"{t.stem}:{t.word.degree}" + (f" {before.value}" if before is not None and ranked else ""))
    return graded | {t.lower for t in tokens if t.lower in _DEGREE_WORDS}


def _aspects(tokens: list[Token]) -> set[str]:
    """What was once or begins to be, against what is: became, former, used to."""
    found = {t.stem for t in tokens if t.stem in _ASPECTS}
    for before, verb, to in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if verb.stem == "use" and to.lower == "to" and before.lower not in _PASSIVE_BEFORE:
            found.add("used to")
    return found


__all__ = ["FEATURES_VERSION", "Features", "extract", "features_of"]
