import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.upstream.answer import Answer, from_body, storable, text_answer
from service.upstream.assemble import StreamAssembler
from service.upstream.replay import PIECE, replay_body, replay_stream
from service.upstream.sse import Event, Parser
from tests.fakes.upstream import USAGE, chat_body

NOW = 1_800_000_000
CALLS = [
    {"id": "call_a", "type": "function", "function": {"name": "tide", "arguments": '{"port": "Ostend"}'}},
    {"id": "call_b", "type": "function", "function": {"name": "moon", "arguments": ""}},
]
WITH_USAGE = {"stream_options": {"include_usage": True}}
TEXT = st.text('ab \u0000\ud83dé日\U0001f469\r\n"\\', max_size=9) | st.just("word " * 200)


def answer(body: dict[str, Any], endpoint: Any = "chat") -> Answer:
    found = from_body(endpoint, body)
    assert found
    return found


def events(given_answer: Answer, **options: Any) -> list[Event]:
    parser = Parser()
    wire = b"".join(replay_stream(given_answer, created=NOW, **options))
    wire.decode("utf-8")
    return parser.feed(wire)


def chunks(given_answer: Answer, **options: Any) -> list[dict[str, Any]]:
    *data, last = events(given_answer, **options)
    assert last.done
    return [json.loads(event.data) for event in data]


def reassembled(given_answer: Answer, **options: Any) -> Answer:
    assembler = StreamAssembler(given_answer.endpoint, len(given_answer.body.get("choices", [0])))
    for event in events(given_answer, **options):
        assembler.feed(event)
    assembler.end()
    assert assembler.answer, assembler.incomplete
    return assembler.answer


def bare(value: Any) -> Any:
    """Without nulls, which a stream leaves out, and without what is new in every replay."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if v is not None and k not in ("id", "created")}
    return [bare(item) for item in value] if isinstance(value, list) else value


@st.composite
def chat_answers(draw: st.DrawFn) -> Answer:
    body = chat_body(None)
    body["choices"] = []
    for index in range(draw(st.integers(1, 3))):
        message: dict[str, Any] = {"role": "assistant", "content": draw(TEXT.filter(bool) | st.none())}
        for name in draw(st.sets(st.sampled_from(["reasoning", "reasoning_content", "refusal"]))):
            message[name] = draw(TEXT.filter(bool))
        if draw(st.booleans()):
            message["annotations"] = [{"type": "url_citation", "url": draw(TEXT)}]
        if draw(st.booleans()):
            message["tool_calls"] = CALLS
        finish = draw(st.sampled_from(["stop", "tool_calls"]))
        choice = {"index": index, "message": message, "logprobs": None, "finish_reason": finish}
        body["choices"].append(choice | {"stop_reason": draw(st.none() | st.integers(0, 9) | TEXT)})
    return answer(body)


@given(chat_answers())
def test_a_chat_answer_survives_being_streamed(stored: Answer) -> None:
    assert bare(reassembled(stored, request=WITH_USAGE).body) == bare(stored.body)


@given(chat_answers())
def test_a_chat_answer_survives_being_sent_as_a_body(stored: Answer) -> None:
    raw = replay_body(stored, created=NOW)
    raw.decode("utf-8")
    body = json.loads(raw)
    assert body | {"id": 0, "created": 0} == stored.body | {"id": 0, "created": 0}
    assert list(body) == list(stored.body)


@given(TEXT)
def test_a_text_completion_survives_both_ways(text: str) -> None:
    stored = text_answer("completions", text, "m")
    assert bare(reassembled(stored).body) == bare(stored.body)
    assert json.loads(replay_body(stored, created=NOW))["choices"] == stored.body["choices"]


@given(TEXT, TEXT)
def test_a_response_survives_both_ways(text: str, arguments: str) -> None:
    stored = text_answer("responses", text, "m")
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": arguments}
    stored.body["output"].append(call | {"status": "completed"})
    streamed = reassembled(stored).body
    assert streamed["output"] == stored.body["output"]
    assert json.loads(replay_body(stored, created=NOW))["output"] == stored.body["output"]
    deltas = [json.loads(event.data) for event in events(stored)]
    said = [d["delta"] for d in deltas if d["type"] == "response.output_text.delta"]
    assert "".join(said) == text


def test_a_chat_stream_has_the_shape_that_clients_expect() -> None:
    got = chunks(answer(chat_body("At noon.", reasoning="Tides.")))
    choices = [chunk["choices"][0] for chunk in got]
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant", "content": ""},
        {"reasoning": "Tides."},
        {"content": "At noon."},
        {},
    ]
    assert [choice["finish_reason"] for choice in choices] == [None, None, None, "stop"]
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in got}) == 1
    assert (got[0]["created"], got[0]["object"]) == (NOW, "chat.completion.chunk")
    assert [chunk.get("system_fingerprint") for chunk in got] == [None, None, None, "vllm-0.32.0-aabbccdd"]
    assert not any("usage" in chunk for chunk in got)


def test_tool_calls_are_opened_and_then_filled() -> None:
    got = chunks(answer(chat_body(None, finish="tool_calls", tool_calls=CALLS)))
    calls = [c["choices"][0]["delta"]["tool_calls"][0] for c in got if "tool_calls" in c["choices"][0]["delta"]]
    opened = {"id": "call_a", "type": "function", "function": {"name": "tide", "arguments": ""}}
    assert calls == [
        {"index": 0} | opened,
        {"index": 0, "function": {"arguments": '{"port": "Ostend"}'}},
        {"index": 1, "id": "call_b", "type": "function", "function": {"name": "moon", "arguments": ""}},
    ]
    assert got[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_usage_comes_last_and_only_if_asked_for() -> None:
    stored = answer(chat_body("At noon."))
    last = chunks(stored, request=WITH_USAGE)[-1]
    assert (last["choices"], last["usage"]) == ([], USAGE)
    assert "usage" not in chunks(stored, request={"stream_options": {"include_usage": False}})[-1]
    unknown = answer({k: v for k, v in chat_body("At noon.").items() if k != "usage"})
    assert chunks(unknown, request=WITH_USAGE)[-1]["choices"]


def test_vllms_metrics_of_an_answer_come_with_its_usage() -> None:
    metrics = {"time_to_first_token_ms": 7.5, "generation_time_ms": 90.0}
    stored = answer(chat_body("Noon.") | {"metrics": metrics})
    *before, last = chunks(stored, request=WITH_USAGE)
    assert last["metrics"] == metrics
    assert not any("metrics" in chunk for chunk in (*before, *chunks(stored)))


def test_ids_are_new_each_time_and_keep_their_endpoint() -> None:
    for endpoint, prefix in (("chat", "chatcmpl-"), ("completions", "cmpl-"), ("responses", "resp_")):
        stored = text_answer(endpoint, "At noon.", "m")  # type: ignore[arg-type] # str of a literal
        one, two = (json.loads(replay_body(stored, created=NOW)) for _ in range(2))
        assert one["id"].startswith(prefix)
        assert one["id"] != two["id"]
    named = json.loads(replay_body(stored, created=NOW, identifier="resp_mine"))
    assert (named["id"], named["created_at"]) == ("resp_mine", NOW)


def test_log_probabilities_stay_with_the_text_that_they_belong_to() -> None:
    body = chat_body("word " * 400)
    probs = {"content": [{"token": "word", "logprob": -0.1, "bytes": None, "top_logprobs": []}]}
    body["choices"][0]["logprobs"] = probs
    stored = answer(body)
    carrying = [c for chunk in chunks(stored) for c in chunk["choices"] if c["logprobs"]]
    assert [(c["delta"], c["logprobs"]) for c in carrying] == [({"content": "word " * 400}, probs)]
    assert bare(reassembled(stored, request=WITH_USAGE).body) == bare(stored.body)


def test_long_texts_come_in_bounded_pieces() -> None:
    stored = text_answer("chat", "x" * (3 * PIECE + 1), "m")
    sizes = [len(c["choices"][0]["delta"].get("content", "")) for c in chunks(stored)]
    assert sizes == [0, PIECE, PIECE, PIECE, 1, 0]


def test_a_stored_stream_answers_a_body_without_new_members() -> None:
    stored = answer(chat_body("At noon."))
    plain = json.loads(replay_body(reassembled(stored, request=WITH_USAGE), created=NOW))
    assert set(plain) <= set(stored.body)
    assert plain["object"] == "chat.completion"
    assert plain["usage"] == USAGE


def test_texts_are_escaped_so_that_the_bytes_are_valid() -> None:
    stored = text_answer("chat", "half \ud83d and \u0000", "m")
    assert b"half \\ud83d and \\u0000" in replay_body(stored, created=NOW)
    assert b"half \\ud83d and \\u0000" in b"".join(replay_stream(stored, created=NOW))


def test_the_events_of_a_response_are_typed_numbered_and_end_with_completed() -> None:
    reasoning = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Short."}],
        "content": [{"type": "reasoning_text", "text": "Long."}],
    }
    refusal = {"type": "refusal", "refusal": "No."}
    stored = text_answer("responses", "At noon.", "m")
    stored.body["output"].insert(0, reasoning)
    stored.body["output"][1]["content"].append(refusal)
    got = events(stored)
    data = [json.loads(event.data) for event in got]
    assert [event.name for event in got] == [item["type"] for item in data]
    assert [item["sequence_number"] for item in data] == list(range(len(data)))
    assert [item["type"].removeprefix("response.") for item in data] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert data[0]["response"]["output"] == []
    assert data[0]["response"]["status"] == "in_progress"
    assert data[12]["item"]["content"] == []
    assert data[-1]["response"]["output"] == stored.body["output"]
    assert len({item["response"]["id"] for item in data if "response" in item}) == 1


def test_what_repeats_the_request_repeats_this_one() -> None:
    first = text_answer("responses", "At noon.", "m").body | {"metadata": {"team": "blue"}, "user": "u-1"}
    stored = answer(first, "responses")
    assert "blue" not in json.dumps(stored.to_payload())
    mine = json.loads(replay_body(stored, created=NOW, request={"metadata": {"team": "red"}}))
    assert (mine["metadata"], mine["user"]) == ({"team": "red"}, None)


def test_one_stored_vector_serves_both_encodings() -> None:
    body = {
        "id": "embd-1",
        "object": "list",
        "created": 5,
        "model": "emb",
        "data": [{"index": 0, "object": "embedding", "embedding": [0.5, -0.25]}],
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    }
    stored = answer(body, "embeddings")
    assert storable(stored) is None
    floats = json.loads(replay_body(stored, created=NOW))
    assert floats["data"] == body["data"]
    assert floats["id"].startswith("embd-")
    packed = json.loads(replay_body(stored, created=NOW, request={"encoding_format": "base64"}))
    assert packed["data"][0]["embedding"] == "AAAAPwAAgL4="
    assert answer(packed, "embeddings").body["data"] == stored.body["data"]


def test_an_absent_id_stays_absent() -> None:
    body = {"object": "list", "model": "emb", "data": [{"index": 0, "embedding": [1.0]}]}
    assert json.loads(replay_body(answer(body, "embeddings"), created=NOW)) == body


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_text_is_a_whole_stream_too(text: str) -> None:
    got = chunks(text_answer("completions", text, "m"))
    assert got[-1]["choices"][0]["finish_reason"] == "stop"
    assert "".join(chunk["choices"][0]["text"] for chunk in got) == text
