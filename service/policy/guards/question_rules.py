"""The guard over what kind of answer is asked for."""

from __future__ import annotations

from service.policy.guards.contrast import MOSTLY, Contrast, Finding, Outcome, show
from service.policy.guards.questions import WHETHER

# How can I find it, where can I find it: who asks for a way has both answered.
_ASKING = frozenset({"i", "we", "you", "one", "to"})
_OPEN_QUESTIONS = frozenset({"what", "how"})
_WAYS = frozenset({"how", "where"})
# Verbs of orders that are carried out by answering.
_WRITING = frozenset({"write", "compose", "draft", "generate", "translate", "summarise", "summarize", "rewrite"})
_INTERCHANGEABLE = ({"how", "where"}, {"when", "how long"})


def _how_to(c: Contrast) -> Finding:
    """Whether one side wants a thing written and the other asks how that is done."""
    asked, order = (c.query, c.stored_words) if c.query.question else (c.stored, c.query_words)
    if asked.question != ("how",) or not order or order[0] not in _WRITING or c.query.content != c.stored.content:
        return None
    return Outcome.GRAY, f"how to {order[0]} ≠ {order[0]}"


def question(c: Contrast) -> Finding:
    a, b = c.query.question, c.stored.question
    if not a or not b:
        return _how_to(c)
    both = {a[0], b[0]}
    if len(both) == 1 or both == _OPEN_QUESTIONS:
        return None
    alike = c.query.content == c.stored.content
    for_a_way = not alike or not _ASKING.isdisjoint(c.query_words + c.stored_words)
    if both in _INTERCHANGEABLE and for_a_way:
        return None
    if WHETHER in both:
        may_be_one = "what" in both or (for_a_way and both & _WAYS)
        return (Outcome.GRAY, show(a, b)) if alike and not may_be_one else None
    if both & _OPEN_QUESTIONS:
        same = alike and len(c.query.frame) == len(c.stored.frame)
        return (Outcome.GRAY, show(a, b)) if same else None
    return (Outcome.BLOCK, show(a, b)) if c.alike >= MOSTLY else None


__all__ = ["question"]
