"""What a text negates: the word that each negation falls on."""

from __future__ import annotations

from service.policy.guards import lexicon as lx
from service.policy.guards.token import Token

_REACH = 5
_FIRST_PERSON = frozenset({"i", "we"})
_INABILITY = frozenset({"can", "could", "able", "unable"})
INABILITY = "?"
HEADLESS = "."


def negated(tokens: list[Token]) -> set[str]:
    """Stems that a negation falls on: with `?` before it where the speaker only says to be unable to, `.` where
    the negation closes its clause.

    "not sure how to", "don't know", "not only" and Chinese A-not-A questions negate nothing that is asked about.
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
    if any(t.lower in lx.KNOWLEDGE for t in after[:2]):
        return ""
    heads = [t for t in after if t.role == "content"]
    if not heads:
        return HEADLESS
    return (INABILITY if _is_inability(tokens, i) else "") + heads[0].stem


def _is_inability(tokens: list[Token], i: int) -> bool:
    """ "I can't log in" asks how to log in; "can't a guest log in" does not."""
    before = [t.lower for t in tokens[max(0, i - 3) : i]]
    near = {*before, *(t.lower for t in tokens[i : i + 3])}
    return bool(near & _FIRST_PERSON) and bool(near & _INABILITY)


def _chinese_head(tokens: list[Token], i: int) -> str:
    around = "".join(t.lower for t in tokens[max(0, i - 2) : i + 3])
    if any(idiom in around and tokens[i].lower in idiom for idiom in lx.CHINESE_NEGATOR_IDIOMS):
        return ""
    if 0 < i < len(tokens) - 1 and tokens[i - 1].lower == tokens[i + 1].lower:
        return ""
    return next((t.stem for t in tokens[i + 1 : i + 1 + _REACH] if t.role == "content"), "")


__all__ = ["HEADLESS", "INABILITY", "negated"]
