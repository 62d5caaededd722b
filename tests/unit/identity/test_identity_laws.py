"""Laws of request identity, over generated requests."""

import json
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.identity.model import ModelIdentity
from service.identity.prompt import identify_prompt
from service.identity.request import (
    KeyPolicy,
    Namespace,
    Reason,
    Tier,
    identify_chat,
    identify_completion,
    identify_embedding,
    identify_response,
)

law = settings(deadline=None, max_examples=200)

PLACE = {"namespace": Namespace("north", "default"), "policy": KeyPolicy()}
ALL = (identify_chat, identify_completion, identify_response, identify_embedding)
STRIPPED = [
    "stream",
    "stream_options",
    "stream_interval",
    "request_id",
    "session_id",
    "priority",
    "metadata",
    "store",
    "service_tier",
    "prompt_cache_key",
    "cache",
    "skip_cache",
    "cache_similarity_threshold",
    "user",
    "safety_identifier",
]


def chat(body, **changes):
    return identify_chat(body, **(PLACE | {"model": ModelIdentity("small")} | changes))


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
words = st.sampled_from(["", "a", "b", "ab", "user", "assistant", '"},{"role":"user"', "\ud83d", "\x00", " "])
parts = st.builds(lambda text: {"type": "text", "text": text}, words)
content = words | st.lists(parts, min_size=1, max_size=2)
messages = st.lists(
    st.builds(
        lambda role, content, name: {"role": role, "content": content} | ({"name": name} if name else {}),
        st.sampled_from(["system", "user", "assistant"]),
        content,
        st.sampled_from([None, None, "ann"]),
    ),
    min_size=1,
    max_size=4,
)
sampling = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.sampled_from([0, 0.5, 1, 2]),
        "top_p": st.sampled_from([0.5, 1]),
        "max_tokens": st.integers(1, 300),
        "stop": st.sampled_from(["x", ["x"], ["x", "y"], []]),
        "logit_bias": st.just({"50": 1, "7": -3}),
        "tools": st.just([{"type": "function", "function": {"name": "f", "parameters": {"a": 1, "b": {"c": 2}}}}]),
        "chat_template_kwargs": st.just({"enable_thinking": False, "depth": 3}),
    },
)
bodies = st.builds(lambda fields, messages: {"model": "small", "messages": messages} | fields, sampling, messages)


def turned(value):
    """The same value with the keys of every object in another order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


def floated(value):
    """The same value with every integer spelt as a float."""
    if isinstance(value, dict):
        return {key: floated(item) for key, item in value.items()}
    if isinstance(value, list):
        return [floated(item) for item in value]
    return float(value) if type(value) is int else value


@law
@given(bodies)
def test_order_of_keys_and_spelling_of_numbers_change_nothing(body):
    assert chat(turned(body)) == chat(floated(body)) == chat(body)


@law
@given(bodies, st.dictionaries(st.sampled_from(STRIPPED), any_json))
def test_stripped_fields_change_nothing(body, stripped):
    assert chat(body | stripped) == chat(body)


@law
@given(bodies, st.text(min_size=1).filter(lambda name: name not in STRIPPED), any_json, any_json)
def test_any_other_field_separates_by_its_value(body, name, one, two):
    known = {"temperature", "messages", "model", "stop", "seed", "top_k"} | body.keys()
    assume(name not in known and json.dumps(one, sort_keys=True) != json.dumps(two, sort_keys=True))
    first, second, without = chat(body | {name: one}), chat(body | {name: two}), chat(body)
    assume(Reason.MALFORMED not in (first.reason, second.reason))
    assume(floated(one) != floated(two))
    assert len({i.exact_key for i in (first, second, without)}) == 3
    assert len({i.scope.key for i in (first, second, without)}) == 3


@law
@given(messages, messages)
def test_distinct_messages_never_collide_and_equal_ones_agree(one, two):
    first, second = chat({"messages": one}), chat({"messages": two})
    assert (first.exact_key == second.exact_key) == (one == two)


def frame(conversation):
    """The conversation without the texts of its last user message."""
    at = max((i for i, m in enumerate(conversation) if m["role"] == "user"), default=None)
    if at is None:
        return conversation
    said = conversation[at]["content"]
    blank = "" if isinstance(said, str) else [part | {"text": ""} for part in said]
    return [*conversation[:at], conversation[at] | {"content": blank}, *conversation[at + 1 :]]


@law
@given(messages, messages, st.integers(0, 3))
def test_a_scope_is_everything_but_the_last_user_text(one, other, index):
    two = [*one[:index], other[0], *one[index + 1 :]]
    first, second = chat({"messages": one}), chat({"messages": two})
    assert (first.scope.key == second.scope.key) == (frame(one) == frame(two))


@law
@given(messages)
def test_text_that_spells_out_a_conversation_is_only_text(conversation):
    spellings = [
        json.dumps(conversation),
        json.dumps(conversation)[1:-1],
        "\n".join(f"{m['role']}: {m['content']}" for m in conversation),
        "<|im_end|>\n".join(f"<|im_start|>{m['role']}\n{m['content']}" for m in conversation),
    ]
    keys = {chat({"messages": [{"role": "user", "content": text}]}).exact_key for text in spellings}
    assume([m for m in conversation if m["content"] in spellings] == [])
    assert chat({"messages": conversation}).exact_key not in keys


def called(ids, results):
    """A conversation in which calls of these ids get these results, in order."""
    calls = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids]
    return [
        {"role": "user", "content": "look", "id": f"m-{ids}"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": i, "content": text} for i, text in results),
        {"role": "user", "content": "well?"},
    ]


unique_ids = st.lists(st.text(max_size=6), min_size=3, max_size=3, unique=True)


@law
@given(unique_ids, unique_ids)
def test_call_ids_may_be_renamed_one_to_one(one, two):
    said = ["north", "south", "east"]
    first = chat({"messages": called(one, zip(one, said, strict=True))})
    second = chat({"messages": called(two, zip(two, said, strict=True))})
    assert first == second


@law
@given(unique_ids, st.permutations(["north", "south", "east"]))
def test_call_ids_keep_calls_and_results_paired(ids, said):
    straight = chat({"messages": called(ids, zip(ids, ["north", "south", "east"], strict=True))})
    other = chat({"messages": called(ids, zip(ids, said, strict=True))})
    swapped = chat({"messages": called(ids, zip([ids[1], ids[0], ids[2]], said, strict=True))})
    assert (other.exact_key == straight.exact_key) == (list(said) == ["north", "south", "east"])
    assert swapped.exact_key not in (other.exact_key, straight.exact_key)


@law
@given(st.lists(words, min_size=1, max_size=4), st.lists(words, min_size=4, max_size=4), st.booleans())
def test_each_turn_names_the_one_before_it(questions, answers, system):
    grown = [{"role": "system", "content": "Be brief."}] if system else []
    seen = []
    for question, answer in zip(questions, answers, strict=False):
        grown = [*grown, {"role": "user", "content": question}]
        seen.append(chat({"messages": grown, "seed": len(grown)}))
        grown = [*grown, {"role": "assistant", "content": answer}]
    assert seen[0].conversation is None
    assert all(later.conversation == earlier.turn for earlier, later in pairwise(seen))
    assert len({identity.turn for identity in seen}) == len(seen)


field_names = st.sampled_from(
    """role content type text id tool_calls tool_call_id call_id image_url url file_id data output uuid input_audio
    messages prompt input instructions model temperature n stop logit_bias stop_token_ids seed include tools
    kv_transfer_params logprobs prompt_embeds""".split()  # noqa: SIM905 - thirty names read better as words
)
tokens = st.sampled_from(["user", "tool", "text", "image_url", "reasoning", "data:,", "data:;base64,QQ==", "function"])
junk = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.floats() | tokens,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(field_names, inner, max_size=4),
    max_leaves=12,
)


@law
@given(junk, junk)
def test_no_body_makes_identity_fail(value, other):
    bodies = [value, *({name: value, "x": other} for name in ("messages", "prompt", "input"))]
    bodies += [{name: [{"role": "user", "content": [value]}, other]} for name in ("messages", "input")]
    for identify in ALL:
        for body in bodies:
            identity = identify(body, model=ModelIdentity("small"), **PLACE)
            assert len(identity.exact_key) == len(identity.scope.key) == 32
            assert (identity.reason is None) == (identity.tier is Tier.SEMANTIC)


@law
@given(words, st.text(max_size=5), sampling.filter(lambda s: "tools" not in s), messages)
def test_the_data_api_agrees_with_the_chat_body(prompt, system, fields, history):
    scope = {"model": "small", "revision": "r1", "system": system, "history": history, "sampling": fields}
    body = {
        "model": "small",
        "messages": [{"role": "system", "content": system}, *history, {"role": "user", "content": prompt}],
    }
    assert identify_prompt(prompt, scope, **PLACE) == chat(body | fields, model=ModelIdentity("small", "r1"))
