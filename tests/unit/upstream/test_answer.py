import base64
import json
import struct
from typing import Any

import pytest

from service.upstream.answer import Answer, Endpoint, from_body, from_raw, storable, text_answer, vector
from tests.fakes.upstream import USAGE, chat_body

CALL = {"id": "call_1", "type": "function", "function": {"name": "tide", "arguments": "{}"}}


def chat(**changes: Any) -> Answer:
    body = chat_body("Noon.")
    body["choices"][0] |= changes.pop("choice", {})
    body["choices"][0]["message"] |= changes
    answer = from_body("chat", body)
    assert answer
    return answer


def response(*items: dict[str, Any], **changes: Any) -> Answer:
    answer = from_body("responses", {"id": "resp_1", "status": "completed", "output": list(items)} | changes)
    assert answer
    return answer


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (chat(), None),
        (chat(content=None, tool_calls=[CALL], choice={"finish_reason": "tool_calls"}), None),
        (chat(content=None, tool_calls=[CALL]), None),  # a named tool_choice ends with stop
        (chat(content=None, function_call={"name": "f", "arguments": "{}"}), None),
        (chat(content=None, refusal="I will not."), None),
        (chat(content=[{"type": "text", "text": "Noon."}]), None),
        (chat(choice={"finish_reason": "length"}), "finish_reason_length"),
        (chat(choice={"finish_reason": "content_filter"}), "finish_reason_content_filter"),
        (chat(choice={"finish_reason": "abort"}), "finish_reason_abort"),
        (chat(choice={"finish_reason": "error"}), "finish_reason_error"),
        (chat(choice={"finish_reason": "repetition"}), "finish_reason_repetition"),
        (chat(choice={"finish_reason": "new\r\nword"}), "finish_reason_unknown"),
        (chat(choice={"finish_reason": None}), "finish_reason_missing"),
        (chat(content=""), "empty_answer"),
        (chat(content=None, reasoning="thought only"), "empty_answer"),
        (chat(content=None, tool_calls=[]), "empty_answer"),
        (chat(audio={"id": "audio_1"}), "server_state"),
        (text_answer("completions", "Noon.", "m"), None),
        (text_answer("completions", " \n", "m"), "empty_answer"),
        (response(said("Noon.")), None),
        (response({"type": "reasoning", "summary": []}, {"type": "function_call"}), None),
        (response({"type": "reasoning", "summary": []}), "empty_answer"),
        (response(said("Noon."), {"type": "web_search_call"}), "server_tool"),
        (response(said("Noon."), status="incomplete"), "response_incomplete"),
        (response(said("Noon."), incomplete_details={"reason": "content_filter"}), "response_incomplete"),
        (response(said("Noon."), error={"code": "server_error"}), "upstream_error"),
        (Answer("chat", chat().body | {"error": {"message": "overloaded"}}), "upstream_error"),
    ],
)
def test_only_complete_answers_are_storable(answer: Answer, reason: str | None) -> None:
    assert storable(answer) == reason


def test_one_unfinished_choice_spoils_the_answer() -> None:
    body = chat_body("Noon.")
    body["choices"].append(body["choices"][0] | {"index": 1, "finish_reason": "length"})
    answer = from_body("chat", body)
    assert answer
    assert storable(answer) == "finish_reason_length"


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        ("chat", {"error": {"message": "no"}}),
        ("chat", {"choices": []}),
        ("chat", {"choices": [{"text": "Noon."}]}),
        ("chat", {"choices": [{"message": {"tool_calls": [None]}}]}),
        ("chat", {"choices": [{"message": {"tool_calls": 7}}]}),
        ("completions", {"choices": [{"message": {}}]}),
        ("responses", {"output": "Noon."}),
        ("embeddings", {"data": [{"index": 0}]}),
        ("embeddings", {"data": [{"embedding": [1, "x"]}]}),
        ("embeddings", {"data": [{"embedding": [float("nan")]}]}),
        ("embeddings", {"data": [{"embedding": "not base64!"}]}),
        ("embeddings", {"data": [{"embedding": "QUI="}]}),  # two bytes are no float32
        ("chat", []),
        ("chat", None),
    ],
)
def test_another_form_is_no_answer(endpoint: Endpoint, body: Any) -> None:
    assert from_body(endpoint, body) is None


def test_bytes_are_read_in_every_endpoints_form() -> None:
    assert from_raw("chat", json.dumps(chat_body("half \ud83d")).encode()) == from_body(
        "chat", chat_body("half \ud83d")
    )
    vectors = {"data": [{"index": 0, "embedding": [0.5]}]}
    assert from_raw("embeddings", json.dumps(vectors).encode()) == from_body("embeddings", vectors)
    for endpoint in ("chat", "embeddings"):
        for raw in (b"", b"<html>", b"{", b"\xff", b"null"):
            assert from_raw(endpoint, raw) is None


@pytest.mark.parametrize("endpoint", ["chat", "completions", "responses"])
def test_text_answers_are_stored_and_read_back(endpoint: Endpoint) -> None:
    answer = text_answer(endpoint, "At noon.", "small-chat")
    assert storable(answer) is None
    assert (answer.text, answer.model, answer.tokens) == ("At noon.", "small-chat", (0, 0))
    assert Answer.from_payload(json.loads(json.dumps(answer.to_payload()))) == answer


@pytest.mark.parametrize(
    "change",
    [{"version": 2}, {"version": None}, {"endpoint": "speech"}, {"endpoint": []}, {"body": {"choices": 3}}],
)
def test_an_unknown_payload_is_a_miss(change: dict[str, Any]) -> None:
    payload = text_answer("chat", "At noon.", "small-chat").to_payload()
    assert Answer.from_payload(payload)
    assert Answer.from_payload(payload | change) is None
    assert Answer.from_payload([payload]) is None


def test_embeddings_are_kept_as_float32_whichever_way_they_came() -> None:
    numbers = list(struct.unpack("<3f", struct.pack("<3f", 0.1, -2.5, 3e-9)))
    packed = base64.b64encode(struct.pack("<3f", *numbers)).decode()
    from_floats = from_body("embeddings", {"data": [{"index": 0, "embedding": numbers}]})
    from_base64 = from_body("embeddings", {"data": [{"index": 0, "embedding": packed}]})
    assert from_floats == from_base64
    assert from_floats
    assert vector(from_floats.body["data"][0]) == numbers
    assert storable(from_floats, {"encoding_format": "base64"}) is None
    assert storable(from_floats, {"embed_dtype": "float16"}) == "vector_encoding"
    assert storable(from_floats, {"endianness": "big"}) == "vector_encoding"


def test_usage_is_read_in_both_apis_names() -> None:
    assert chat().usage == USAGE
    assert chat().tokens == (9, 4)
    assert response(said("x"), usage={"input_tokens": 3, "output_tokens": 2}).tokens == (3, 2)
    for odd in (5 * 10**9, -1, 1.5, "7", True, [1], None):
        assert response(said("x"), usage={"input_tokens": odd, "output_tokens": 2}).tokens == (0, 2)
    for none in ("x", 7, [1]):
        assert response(said("x"), usage=none).tokens == (0, 0)


def test_what_repeats_a_callers_request_is_not_kept() -> None:
    kept = response(said("x"), metadata={"team": "blue"}, user="u-1", prompt_cache_key="k", store=True)
    assert kept.body["metadata"] == {}
    assert kept.body["user"] is kept.body["prompt_cache_key"] is None
    assert kept.body["store"] is True


def test_what_is_said_is_words_and_calls_without_their_ids() -> None:
    called = chat(
        content="Let me see.",
        tool_calls=[CALL, {"id": "call_2", "type": "custom", "custom": {"name": "wind", "input": "now"}}],
    )
    assert called.said.text == "Let me see."
    assert called.said.calls == (("tide", "{}"), ("wind", "now"))
    assert chat(content=None, function_call={"name": "f", "arguments": {"a": 1}}).said.calls == (("f", '{"a":1}'),)
    item = {"type": "function_call", "call_id": "call_9", "name": "tide", "arguments": "{}"}
    assert response(said("Let me see."), item).said == chat(content="Let me see.", tool_calls=[CALL]).said
