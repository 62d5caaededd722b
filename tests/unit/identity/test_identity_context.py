"""How much of the talk before the last user message must be the same."""

from __future__ import annotations

from typing import Any

import pytest

from service.identity.model import ModelIdentity
from service.identity.request import Context, Identity, KeyPolicy, Namespace, Reason, Tier, identify_chat

WHALES = [("user", "Tell me about blue whales."), ("assistant", "The largest animals.")]
SHARKS = [("user", "Tell me about mako sharks."), ("assistant", "The fastest sharks.")]
LOUD = [("user", "How loud are they?"), ("assistant", "Very.")]
LAST = [("user", "What do they eat?")]
QUESTION = "What do blue whales eat?"


def identify(*talk: list[tuple[str, str]], more: list[Any] | None = None, **context: Any) -> Identity:
    messages = [{"role": role, "content": text} for part in talk for role, text in part]
    return identify_chat(
        {"messages": [*(more or []), *messages]},
        namespace=Namespace("north", "faq"),
        model=ModelIdentity("small"),
        policy=KeyPolicy(context=Context(**context)),
    )


def same_scope(a: Identity, b: Identity) -> bool:
    return a.scope.key == b.scope.key


def test_the_whole_talk_counts_by_default() -> None:
    assert not same_scope(identify(WHALES, LOUD, LAST), identify(SHARKS, LOUD, LAST))
    assert identify(WHALES, LAST) == identify(WHALES, LAST, turns=None)


@pytest.mark.parametrize(("turns", "same"), [(1, True), (2, True), (3, False), (9, False)])
def test_only_the_last_turns_count(turns: int, same: bool) -> None:
    whales, sharks = (identify(start, LOUD, LAST, turns=turns) for start in (WHALES, SHARKS))
    assert same_scope(whales, sharks) is same
    assert whales.exact_key != sharks.exact_key, "only the very same request is an exact hit"
    assert whales.text == "What do they eat?"


def test_what_was_answered_in_the_last_turns_counts_too() -> None:
    other = [("user", "How loud are they?"), ("assistant", "188 decibels.")]
    assert not same_scope(identify(WHALES, LOUD, LAST, turns=2), identify(WHALES, other, LAST, turns=2))


def test_the_system_prompt_always_counts() -> None:
    brief = [{"role": "system", "content": "Be brief."}]
    for context in ({"turns": 1}, {"rewritten": True, "question": QUESTION}):
        assert not same_scope(identify(WHALES, LAST, **context), identify(WHALES, LAST, more=brief, **context))


def test_answers_of_one_context_are_no_neighbours_in_another() -> None:
    """Those of a shorter talk would be right by chance only, once the policy wants all of it again."""
    scopes = {identify(LAST, **c).scope.key for c in ({}, {"turns": 1}, {"turns": 2}, {"rewritten": True})}
    assert len(scopes) == 4


def test_a_rewritten_question_stands_alone() -> None:
    asked = identify(WHALES, LOUD, LAST, rewritten=True, question=f" {QUESTION} ")
    alone = identify([("user", QUESTION)], rewritten=True)
    assert same_scope(asked, alone)
    assert (asked.text, asked.tier, alone.dialogue) == (QUESTION, Tier.SEMANTIC, ())
    assert asked.exact_key != alone.exact_key


def test_before_it_is_rewritten_a_question_can_only_be_matched_exactly() -> None:
    waiting = identify(WHALES, LAST, rewritten=True)
    assert (waiting.tier, waiting.reason, waiting.text) == (Tier.EXACT, Reason.NOT_REWRITTEN, None)
    assert waiting.dialogue == (*WHALES, *LAST)
    assert waiting.exact_key == identify(WHALES, LAST, rewritten=True, question=QUESTION).exact_key


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
        {"role": "tool", "content": "12 tons", "tool_call_id": "1"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
        {"role": "user", "content": []},
    ],
)
def test_a_talk_of_more_than_texts_is_not_rewritten(message: Any) -> None:
    first = {"role": "user", "content": "Tell me about blue whales."}
    other = {"role": "user", "content": "Tell me about mako sharks."}
    asked, against = (identify(LAST, more=[start, message], rewritten=True) for start in (first, other))
    assert (asked.tier, asked.dialogue, asked.text) == (Tier.SEMANTIC, (), "What do they eat?")
    assert not same_scope(asked, against)
