import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.upstream.answer import Answer, Endpoint, storable
from service.upstream.assemble import StreamAssembler, _combined
from service.upstream.sse import Event
from tests.fakes.upstream import USAGE, chat_chunk

DONE = Event("[DONE]")


def assembled(
    *chunks: Any, endpoint: Endpoint = "chat", choices: int = 1, done: bool = True, end: bool = True
) -> StreamAssembler:
    assembler = StreamAssembler(endpoint, choices)
    for chunk in chunks:
        assembler.feed(Event(json.dumps(chunk)))
    if done:
        assembler.feed(DONE)
    if end:
        assembler.end()
    return assembler


def answer_of(*chunks: Any, **options: Any) -> Answer:
    answer = assembled(*chunks, **options).answer
    assert answer
    return answer


def message_of(*deltas: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    chunks = [chat_chunk(delta) for delta in deltas]
    answer = answer_of(*chunks, chat_chunk({}, finish_reason=finish))
    message: dict[str, Any] = answer.body["choices"][0]["message"]
    return message


ROLE = {"role": "assistant", "content": ""}
LAST = chat_chunk({}, finish_reason="stop", stop_reason=None)


def test_a_chat_stream_becomes_the_body_of_the_same_answer() -> None:
    counted = chat_chunk({}) | {"choices": [], "usage": USAGE}
    pieces = [chat_chunk(delta) for delta in (ROLE, {"content": "At "}, {"content": "noon."})]
    answer = answer_of(*pieces, LAST | {"system_fingerprint": "vllm-1"}, counted)
    assert answer.body == {
        "id": "chatcmpl-upstream",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "small-chat",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "At noon.", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
                "stop_reason": None,
            }
        ],
        "usage": USAGE,
        "system_fingerprint": "vllm-1",
    }
    assert storable(answer) is None


def test_a_stream_without_null_members_becomes_a_body_with_them() -> None:
    (choice,) = answer_of(
        {"choices": [{"index": 0, "delta": ROLE | {"content": "Noon."}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ).body["choices"]
    assert (choice["logprobs"], choice["message"]["refusal"]) == (None, None)


def test_reasoning_refusal_and_other_members_are_kept() -> None:
    assert message_of(ROLE, {"reasoning": "a"}, {"reasoning": "b"}, {"content": "c"}) == {
        "role": "assistant",
        "content": "c",
        "refusal": None,
        "reasoning": "ab",
    }
    assert message_of(ROLE, {"reasoning_content": "a"}, {"content": "c"})["reasoning_content"] == "a"
    refused = message_of(ROLE, {"refusal": "I "}, {"refusal": "won't."})
    assert (refused["content"], refused["refusal"]) == (None, "I won't.")
    noted = message_of(ROLE, {"content": "c", "annotations": [{"n": 1}]}, {"annotations": [{"n": 2}]})
    assert noted["annotations"] == [{"n": 1}, {"n": 2}]


def test_tool_calls_are_put_together_by_index_even_interleaved() -> None:
    message = message_of(
        {"role": "assistant", "content": None},
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "tide"}}]},
        {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "moon"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"port":'}}]},
        {"tool_calls": [{"index": 1, "id": "", "function": {"name": None, "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ' "Ostend"}'}}]},
        finish="tool_calls",
    )
    assert message == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "tide", "arguments": '{"port": "Ostend"}'}},
            {"id": "b", "type": "function", "function": {"name": "moon", "arguments": "{}"}},
        ],
    }


def test_whole_unnumbered_and_custom_calls_are_read_too() -> None:
    whole = {"id": "a", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
    other = {"id": "b", "type": "function", "function": {"name": "moon"}}
    custom = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "shell", "input": "l"}}
    assert message_of(ROLE, {"tool_calls": [whole]}, {"tool_calls": [other]})["tool_calls"] == [
        whole,
        other | {"function": {"name": "moon", "arguments": ""}},
    ]
    more = {"index": 0, "custom": {"input": "s"}}
    assert message_of(ROLE, {"tool_calls": [custom]}, {"tool_calls": [more]})["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    ]
    legacy = ({"function_call": {"name": "f", "arguments": "{"}}, {"function_call": {"arguments": "}"}})
    assert message_of(ROLE, *legacy)["function_call"] == {"name": "f", "arguments": "{}"}


def test_choices_come_apart_by_index_and_all_must_finish() -> None:
    chunks = [
        chat_chunk({"content": "one"}, index=1),
        chat_chunk({"content": "nil"}, index=0),
        chat_chunk({}, index=1, finish_reason="stop"),
    ]
    last = chat_chunk({}, index=0, finish_reason="stop")
    texts = [c["message"]["content"] for c in answer_of(*chunks, last, choices=2).body["choices"]]
    assert texts == ["nil", "one"]
    assert assembled(*chunks, choices=2).incomplete == "stream_unfinished"
    assert assembled(chunks[0], chunks[2], choices=2).incomplete == "stream_unfinished"


def test_log_probabilities_and_token_ids_are_joined() -> None:
    first = chat_chunk({"content": "a"}, logprobs={"content": [{"token": "a"}]}, token_ids=[1])
    second = chat_chunk({"content": "b"}, logprobs={"content": [{"token": "b"}]}, token_ids=[2, 3])
    (choice,) = answer_of(first, second, LAST).body["choices"]
    assert choice["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}
    held: list[int] = []
    assert _combined(held, [1]) is held, "a long answer's lists are not copied for each token"
    assert choice["token_ids"] == [1, 2, 3]


def test_completions_are_joined_to_text() -> None:
    head = {"id": "cmpl-1", "object": "text_completion", "created": 5, "model": "m"}
    chunks = [
        head | {"choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": finish}]}
        for text, finish in (("a", None), ("b", None), ("", "stop"))
    ]
    body = answer_of(*chunks, endpoint="completions").body
    assert body == head | {
        "choices": [{"index": 0, "text": "ab", "logprobs": None, "finish_reason": "stop"}],
    }


def test_a_response_is_complete_with_its_last_event_only() -> None:
    item = {"id": "msg_1", "type": "message", "content": [{"type": "output_text", "text": "Noon."}]}
    events = [
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}},
    ]
    assert answer_of(*events, endpoint="responses", done=False).body["output"] == [item]
    whole = {"type": "response.completed", "response": {"status": "completed", "output": [item, item]}}
    assert len(answer_of(*events[:2], whole, endpoint="responses").body["output"]) == 2
    assert assembled(*events[:2], endpoint="responses").incomplete == "stream_unfinished"
    failed = {"type": "response.incomplete", "response": {"output": [item]}}
    assert assembled(*events[:2], failed, endpoint="responses").incomplete == "stream_error"


@pytest.mark.parametrize(
    ("chunks", "options", "reason"),
    [
        ([chat_chunk({"content": "a"})], {}, "stream_unfinished"),
        ([chat_chunk({"content": "a"}), LAST], {"done": False, "end": False}, "stream_cut"),
        ([LAST, {"error": {"message": "no"}}], {}, "stream_error"),
        ([{"type": "error", "message": "no"}, LAST], {}, "stream_error"),
        ([[1], LAST], {}, "stream_malformed"),
        ([{"choices": [7]}, LAST], {}, "stream_malformed"),
        ([], {}, "stream_unfinished"),
    ],
)
def test_anything_else_is_no_answer(chunks: list[Any], options: dict[str, Any], reason: str) -> None:
    assembler = assembled(*chunks, **options)
    assert (assembler.incomplete, assembler.answer) == (reason, None)


def test_a_done_or_a_regular_end_completes() -> None:
    assert assembled(LAST, done=True, end=False).answer
    assert assembled(LAST, done=False, end=True).answer


def test_what_is_no_json_is_no_answer() -> None:
    assembler = StreamAssembler("chat")
    assembler.feed(Event('{"choices": ['))
    assembler.end()
    assert assembler.incomplete == "stream_malformed"


SOME = st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "a", "stop", "response.completed"])
MEMBERS = (
    ("choices", "delta", "index", "text", "role", "content", "tool_calls", "function_call", "function", "arguments"),
    ("name", "id", "type", "custom", "input", "finish_reason", "logprobs", "usage", "error"),
    ("response", "output", "output_index", "item", "status", "message"),
)
NAMES = st.sampled_from([name for names in MEMBERS for name in names])
NOISE = st.recursive(
    SOME, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
CHOICE = st.fixed_dictionaries({}, optional={"index": SOME, "delta": NOISE, "text": NOISE, "finish_reason": SOME})
DELTA = st.fixed_dictionaries({"delta": st.dictionaries(NAMES, NOISE, max_size=3)}, optional={"finish_reason": SOME})
CHUNK = st.fixed_dictionaries({"choices": st.lists(CHOICE | DELTA, max_size=2)}) | NOISE


@given(st.lists(CHUNK, max_size=4), st.sampled_from(get_args(Endpoint)[:3]))
def test_nothing_that_a_server_sends_raises(chunks: list[Any], endpoint: Endpoint) -> None:
    assembler = assembled(*chunks, endpoint=endpoint)
    assert (assembler.answer is None) == (assembler.incomplete is not None)
    if assembler.answer:
        storable(assembler.answer)
