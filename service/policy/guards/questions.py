"""What kind of answer a text asks for."""

from __future__ import annotations

from service.policy.guards import lexicon as lx
from service.policy.guards.token import Token

AUXILIARIES = frozenset(
    [
        "do",
        "does",
        "did",
        "is",
        "are",
        "was",
        "were",
        "be",
        "will",
        "would",
        "shall",
        "should",
        "can",
        "could",
        "may",
        "might",
        "must",
        "has",
        "have",
        "had",
    ]
)

_COURTEOUS = frozenset({"can", "could", "would", "will", "do"})
_ASKED = frozenset({"you", "someone", "somebody", "anyone", "anybody"})
_PREAMBLE = frozenset({"please", "hi", "hello", "hey", "so", "and", "but", "ok", "okay", "well", "also"})
WHETHER = "whether"


def question(text: str, tokens: list[Token]) -> tuple[str, ...]:
    """The first question word that asks (not the one that opens a clause), refined: how many, how long, when …"""
    for i, token in enumerate(tokens):
        if token.lower in AUXILIARIES and _opens(tokens, i) and not _is_courtesy(tokens, i):
            return (WHETHER,)
        kind = lx.QUESTION_WORDS.get(token.lower)
        if kind and _asks(tokens, i, kind):
            return (_refined(kind, _noun_after(tokens, i)),)
        if token.role == "content":
            break
    return next(((kind,) for words, kind in lx.CHINESE_QUESTIONS if words in text), ())


def without_chinese_question(text: str) -> str:
    """The text without the Chinese phrase that asks, whose characters would stand for content."""
    found = next((words for words, _ in lx.CHINESE_QUESTIONS if words in text), None)
    return text.replace(found, " ", 1) if found else text


def _opens(tokens: list[Token], i: int) -> bool:
    return all(t.lower in _PREAMBLE for t in tokens[:i])


def _is_courtesy(tokens: list[Token], i: int) -> bool:
    """ "Could you tell me …" and "Can someone explain …" ask for what follows them."""
    return i + 1 < len(tokens) and tokens[i + 1].lower in _ASKED and tokens[i].lower in _COURTEOUS


def _asks(tokens: list[Token], i: int, kind: str) -> bool:
    """At the very start "when" and "where" may open a clause: they ask if an auxiliary follows."""
    return i > 0 or kind not in {"when", "where"} or (len(tokens) > 1 and tokens[1].lower in AUXILIARIES)


def _noun_after(tokens: list[Token], i: int) -> str:
    """What a question word asks for: what time, what is the time."""
    after = [t.lower for t in tokens[i + 1 : i + 4]]
    if after[:2] == ["much", "time"]:
        return "long"
    if "the" in after[:2]:
        after = after[after.index("the") + 1 :]
    return after[0] if after else ""


def _refined(kind: str, after: str) -> str:
    if kind == "how":
        return lx.HOW_OF.get(after, kind)
    return lx.WHAT_OF.get(after, kind) if kind == "what" else kind


__all__ = ["AUXILIARIES", "WHETHER", "question", "without_chinese_question"]
