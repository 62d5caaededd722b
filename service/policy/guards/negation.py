"""What a text negates: the word that each negation falls on."""

from __future__ import annotations

from service.policy.guards import lexicon as lx
from service.policy.guards.questions import AUXILIARIES
from service.policy.guards.token import Token
from service.policy.guards.words import stem

_REACH = 5
_FIRST_PERSON = frozenset({"i", "we"})
_INABILITY = frozenset({"can", "could", "able", "unable"})
_TAGS = [[pronoun] for pronoun in ("it", "he", "she", "they", "we", "you", "i", "there")]
_COMPLEMENTS = frozenset("了到上下出起开掉来去动成好完见")
INABILITY = "?"
CLAUSE = "*"
KNOWLEDGE = frozenset(map(stem, lx.KNOWLEDGE))
_ALTERNATIVE = frozenset({"or", "if", "why", "whether"})


def negated(tokens: list[Token]) -> set[str]:
    """Stems that a negation falls on: with `?` before it where the speaker only says to be unable to, with `*` where
    it stands before the subject ("isn't it so") or at the end, and so denies the whole clause.

    "not only" and Chinese A-not-A questions negate nothing; "not sure how to" and "don't know" deny only the knowledge.
    """
    found = set()
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if token.lower in lx.CHINESE_NEGATORS:
            head = _chinese_head(tokens, i)
        elif token.lower in lx.NEGATORS or token.lower == "unable":
            head = _head(tokens, i)
        else:
            continue
        if head:
            found.add(head)
    return found


def _head(tokens: list[Token], i: int) -> str:
    after = tokens[i + 1 : i + 1 + _REACH]
    if tokens[i].lower in {"no", "not"} and after and after[0].lower in {"only", "matter", "one", "doubt"}:
        return ""
    knowledge = next((t.stem for t in after[:2] if t.stem in KNOWLEDGE), "")
    if knowledge:
        return (CLAUSE if _is_of_another(tokens, i, knowledge) else "") + knowledge
    heads = [t for t in after if t.role == "content"]
    if not heads:
        return _clause_before(tokens, i)
    if _is_inability(tokens, i):
        return INABILITY + heads[0].stem
    return (CLAUSE if _is_inverted(tokens, i) else "") + heads[0].stem


def _is_of_another(tokens: list[Token], i: int, knowledge: str) -> bool:
    """Whether it is not the speaker who does not know: who can't see it, why can't guests see it."""
    if any(t.lower in lx.SUBJECT_QUESTIONS for t in tokens[max(0, i - 2) : i]):
        return True
    return i + 1 < len(tokens) and tokens[i + 1].role == "content" and tokens[i + 1].stem != knowledge


def _is_inverted(tokens: list[Token], i: int) -> bool:
    """Whether the negation stands between an auxiliary that opens the question and its subject."""
    if i == 0 or tokens[i - 1].lower not in AUXILIARIES:
        return False
    return i == 1 or tokens[i - 2].lower in lx.QUESTION_WORDS


def _clause_before(tokens: list[Token], i: int) -> str:
    """What a negation at the end denies; "or not" and "isn't it" deny nothing."""
    before, after = (tokens[i - 1].lower if i else ""), tokens[i + 1 : i + 3]
    if before in _ALTERNATIVE or (before in AUXILIARIES and [t.lower for t in after] in _TAGS):
        return ""
    return next((CLAUSE + t.stem for t in tokens[max(0, i - _REACH) : i][::-1] if t.role == "content"), "")


def _is_inability(tokens: list[Token], i: int) -> bool:
    """ "I can't log in" asks how to log in; "can't a guest log in" and "what can I not take" do not."""
    before = [t.lower for t in tokens[max(0, i - 3) : i]]
    if not lx.SUBJECT_QUESTIONS.isdisjoint(before):
        return False
    near = {*before, *(t.lower for t in tokens[i : i + 3])}
    return bool(near & _FIRST_PERSON) and bool(near & _INABILITY)


def _chinese_head(tokens: list[Token], i: int) -> str:
    around = "".join(t.lower for t in tokens[max(0, i - 2) : i + 3])
    if any(idiom in around and tokens[i].lower in idiom for idiom in lx.CHINESE_NEGATOR_IDIOMS):
        return ""
    if 0 < i < len(tokens) - 1 and tokens[i - 1].lower == tokens[i + 1].lower:
        return ""
    if i > 0 and tokens[i].lower == "不" and i + 1 < len(tokens) and tokens[i + 1].lower in _COMPLEMENTS:
        return _clause_before(tokens, i)
    return next((t.stem for t in tokens[i + 1 : i + 1 + _REACH] if t.role == "content"), "")


__all__ = ["CLAUSE", "INABILITY", "KNOWLEDGE", "negated"]
