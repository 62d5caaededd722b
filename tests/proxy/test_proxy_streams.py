"""Streams and bodies: what passes at once, what is kept, and how it is given again."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import httpx
import openai
import pytest
from asking import Asker, asked, chat, says, streams

from tests.fakes.upstream import USAGE, FakeUpstream, Reply, chat_body, chat_chunk, chat_stream, lines

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_first_byte_of_a_miss_comes_while_the_model_still_writes(
    upstream: FakeUpstream, asker: Asker
) -> None:
    gate = asyncio.Event()
    upstream.on("weaver", Reply(chunks=chat_stream("warp ", "weft"), gates={2: gate}))
    async with asker.open(chat("Name words of the weaver", stream=True)) as response:
        body = response.aiter_bytes()
        seen = b""
        while b"warp" not in seen:
            seen += await anext(body)
        assert b"weft" not in seen
        assert response.headers["x-cache"] == "MISS"
        gate.set()
        async for chunk in body:
            seen += chunk
    assert b"weft" in seen
    assert seen.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("first", [True, False], ids=["stream first", "body first"])
async def test_one_stored_answer_serves_streams_and_bodies(upstream: FakeUpstream, asker: Asker, first: bool) -> None:
    calls = [{"id": "call_a", "type": "function", "function": {"name": "tide", "arguments": '{"port": "Ostend"}'}}]
    text = f"When is high tide, {first}?"
    said = {"reasoning": "Tides.", "tool_calls": calls}
    delta = said | {"tool_calls": [calls[0] | {"index": 0}]}
    stream = lines(chat_chunk({"role": "assistant", "content": ""}), chat_chunk(delta), _end("tool_calls"), _usage())
    upstream.on(text, Reply(chunks=stream) if first else Reply(json=chat_body(None, finish="tool_calls", **said)))
    body = chat(text, tools=[{"type": "function", "function": {"name": "tide"}}])
    await asker.ask(body | {"stream": first})
    whole = await asker.stored(body)
    message = whole.json["choices"][0]["message"]
    assert (message["tool_calls"], message["reasoning"], message["content"]) == (calls, "Tides.", None)
    again = await asker.stored(body | {"stream": True})
    deltas = [c["choices"][0]["delta"] for c in again.chunks]
    assert "".join(d.get("reasoning", "") for d in deltas) == "Tides."
    assert next(d["tool_calls"][0]["function"].get("name") for d in deltas if "tool_calls" in d) == "tide"
    assert again.chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert len(asked(upstream, text)) == 1


async def test_token_counts_are_asked_for_and_shown_to_those_who_asked(upstream: FakeUpstream, asker: Asker) -> None:
    streams(upstream, "sluice", "A ", "gate.")
    body = chat("What is a sluice?", stream=True)
    first = await asker.ask(body)
    assert all("usage" not in chunk or not chunk["usage"] for chunk in first.chunks)
    assert upstream.calls[-1].json["stream_options"] == {"include_usage": True}
    plain = await asker.stored(body)
    assert [c for c in plain.chunks if not c["choices"]] == []
    counted = await asker.stored(body | {"stream_options": {"include_usage": True}})
    assert counted.chunks[-1]["usage"] == USAGE
    assert (await asker.stored(chat("What is a sluice?"))).json["usage"] == USAGE


async def test_a_server_that_takes_no_stream_options_gets_the_request_as_it_was(
    upstream: FakeUpstream, asker: Asker
) -> None:
    refusal = Reply(status=400, json={"error": {"message": "no such field"}})
    upstream.on("bollard", refusal, Reply(chunks=chat_stream("A post.")))
    got = await asker.ask(chat("What is a bollard?", stream=True))
    assert (got.status, got.text) == (200, "A post.")
    assert "stream_options" not in upstream.calls[-1].json


async def test_an_answer_is_stored_though_its_client_left(upstream: FakeUpstream, asker: Asker) -> None:
    gate = asyncio.Event()
    upstream.on("depot", Reply(chunks=chat_stream("At ", "midnight.", usage=True), gates={2: gate}))
    body = chat("When does the depot close?")
    async with asker.open(body | {"stream": True}) as response:
        await anext(response.aiter_bytes())
    gate.set()
    assert (await asker.stored(body)).text == "At midnight."
    assert not upstream.calls[-1].aborted.is_set()


async def test_a_passed_request_ends_at_the_model_when_its_client_leaves(upstream: FakeUpstream, asker: Asker) -> None:
    upstream.on("quay", Reply(chunks=chat_stream("Long ", "ago."), gates={2: asyncio.Event()}))
    async with asker.open(chat("Tell of the quay", stream=True), x_cache_mode="off") as response:
        await anext(response.aiter_bytes())
    await asyncio.wait_for(upstream.calls[-1].aborted.wait(), 10)


@pytest.mark.parametrize(
    ("what", "reply"),
    [
        ("cut", Reply(chunks=chat_stream("one ", "two"), cut_after=2)),
        ("error event", Reply(chunks=lines(chat_chunk({"content": "one"}), {"error": {"message": "no"}}))),
        ("no end", Reply(chunks=lines(chat_chunk({"content": "one"})))),
        ("length", Reply(chunks=chat_stream("one ", "two", finish="length"))),
        ("filter", Reply(chunks=chat_stream("I cannot", finish="content_filter"))),
        ("empty", Reply(chunks=chat_stream(""))),
        ("a body that is no answer", Reply(json={"object": "list"})),
        ("a body cut short", Reply(json=chat_body("one"), headers={"content-length": "9999"})),
        ("a body by length", Reply(json=chat_body("one", finish="length"))),
        ("a body with half a call", Reply(json=chat_body(None, finish="tool_calls", tool_calls=["half"]))),
        ("an error", Reply(status=503, json={"error": {"message": "busy"}})),
    ],
)
async def test_what_is_not_whole_is_asked_for_again(
    upstream: FakeUpstream, asker: Asker, what: str, reply: Reply
) -> None:
    text = f"Tell me of a {what}"
    body = chat(text, stream=bool(reply.chunks))
    upstream.on(text, reply, Reply(chunks=chat_stream("whole", usage=True)))
    is_cut = what in ("cut", "a body cut short")
    with pytest.raises(httpx.RemoteProtocolError) if is_cut else nullcontext():
        await asker.ask(body)
    assert (await asker.stored(chat(text, stream=True))).text == "whole"
    assert len(asked(upstream, text)) >= 2


async def test_a_hit_is_a_new_answer_with_the_old_usage(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "cooper", "Casks.")
    body = chat("What does a cooper make?", metadata={"team": "red"})
    first = await asker.ask(body)
    one, two = await asker.stored(body), await asker.stored(body)
    assert len({answer.json["id"] for answer in (first, one, two)}) == 3
    assert two.json | {"id": 0, "created": 0} == first.json | {"id": 0, "created": 0}
    assert two.json["created"] > first.json["created"]
    ids = [answer.headers.get_list("x-request-id") for answer in (first, one, two)]
    assert all(len(named) == 1 for named in ids)
    assert two.headers["x-cache-reason"] == "same_request"
    assert int(two.headers["age"]) <= 60


async def test_an_answer_that_cannot_be_streamed_is_asked_for(upstream: FakeUpstream, asker: Asker) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]
    streamed = Reply(chunks=chat_stream("A lock."))
    upstream.on("lock", Reply(json=chat_body(None, finish="tool_calls", tool_calls=calls)), streamed)
    body = chat("Where is the lock?")
    assert (await asker.stored(body)).json["choices"][0]["message"]["tool_calls"] == calls
    refused = await asker.ask(body | {"stream": True}, cache_control="only-if-cached")
    got = await asker.ask(body | {"stream": True})
    assert (refused.status, got.text, got.cache, got.reason) == (504, "A lock.", "ERROR", "internal")


async def test_stream_options_of_another_type_are_the_models_to_judge(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "towpath", "Along the canal.")
    await asker.stored(chat("Where is the towpath?"))
    upstream.on("towpath", Reply(status=400, json={"error": {"message": "stream_options"}}))
    got = await asker.ask(chat("Where is the towpath?", stream=True, stream_options=5))
    assert (got.status, got.cache, got.reason) == (400, "BYPASS", "malformed")


async def test_openai_clients_read_misses_and_hits_alike(upstream: FakeUpstream, asker: Asker) -> None:
    streams(upstream, "narrowboat", "Tiller ", "left.")
    options: dict[str, Any] = chat("How do I steer a narrowboat?", stream=True, stream_options={"include_usage": True})
    make = {
        "base_url": f"{asker.base}/v1",
        "api_key": "none",
        "max_retries": 0,
        "default_headers": {"x-cache-namespace": asker.cache},
    }

    def with_the_sync_client() -> tuple[Any, ...]:
        with openai.OpenAI(**make) as client:
            stream = client.chat.completions.create(**options)
            return _read(list(stream), stream.response.headers)

    first = await asyncio.to_thread(with_the_sync_client)
    await asker.stored(chat("How do I steer a narrowboat?"))
    again = await asyncio.to_thread(with_the_sync_client)
    async with openai.AsyncOpenAI(**make) as client:
        stream = await client.chat.completions.create(**options)
        last = _read([chunk async for chunk in stream], stream.response.headers)
        whole = await client.chat.completions.with_raw_response.create(**chat("How do I steer a narrowboat?"))
    assert first[0] == "MISS"
    assert again[0] == last[0] == whole.headers["x-cache"] == "HIT"
    assert first[1:] == again[1:] == last[1:] == ("Tiller left.", "stop", USAGE["total_tokens"])
    assert whole.parse().choices[0].message.content == "Tiller left."


async def test_responses_and_completions_are_cached_too(upstream: FakeUpstream, asker: Asker) -> None:
    part = {"type": "output_text", "text": "At noon.", "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "small-chat"}
    upstream.on("/v1/responses", Reply(json=response | {"output": [item], "metadata": {"of": "one"}}))
    mine = {"model": "small-chat", "input": "When?", "temperature": 0}
    await asker.ask(mine | {"metadata": {"of": "one"}}, path="/v1/responses")
    got = await asker.stored(mine | {"metadata": {"of": "two"}}, path="/v1/responses")
    assert (got.json["output"][0]["content"][0]["text"], got.json["metadata"]) == ("At noon.", {"of": "two"})
    events = (await asker.stored(mine | {"stream": True}, path="/v1/responses")).events
    assert '"response.completed"' in events[-1]

    choice = {"index": 0, "text": "Noon.", "finish_reason": "stop", "logprobs": None}
    text = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "small-chat", "choices": [choice]}
    upstream.on("/v1/completions", Reply(json=text))
    prompt = {"model": "small-chat", "prompt": "The ferry leaves at", "temperature": 0}
    await asker.ask(prompt, path="/v1/completions")
    got = await asker.stored(prompt, path="/v1/completions")
    assert got.json["choices"][0]["text"] == "Noon."


async def test_an_answer_with_fewer_items_than_were_asked_for_is_asked_for_again(
    upstream: FakeUpstream, asker: Asker
) -> None:
    rows = [{"index": number, "object": "embedding", "embedding": [0.5]} for number in range(2)]
    vectors = {"object": "list", "model": "e", "usage": USAGE}
    upstream.on("a bass drum", *(Reply(json=vectors | {"data": data}) for data in ([], rows[:1], rows)))
    body = {"model": "e", "input": ["a bass drum", "a tin whistle"]}
    for expected in (0, 1, 2):
        assert len((await asker.ask(body, path="/v1/embeddings")).json["data"]) == expected
    upstream.on("two riddles", Reply(json=chat_body("one")))
    for _ in range(2):
        assert (await asker.ask(chat("Tell two riddles", n=2))).cache == "MISS"


async def test_one_stored_vector_serves_both_spellings(upstream: FakeUpstream, asker: Asker) -> None:
    row = {"index": 0, "object": "embedding", "embedding": [0.5, -0.25]}
    upstream.on("/v1/embeddings", Reply(json={"object": "list", "model": "e", "data": [row], "usage": USAGE}))
    body = {"model": "e", "input": "a tin whistle"}
    await asker.ask(body, path="/v1/embeddings")
    packed = await asker.stored(body | {"encoding_format": "base64"}, path="/v1/embeddings")
    assert packed.json["data"][0]["embedding"] == "AAAAPwAAgL4="
    listed = await asker.stored(body | {"encoding_format": "float"}, path="/v1/embeddings")
    assert listed.json["data"][0]["embedding"] == [0.5, -0.25]
    async with openai.AsyncOpenAI(
        base_url=f"{asker.base}/v1", api_key="none", default_headers={"x-cache-namespace": asker.cache}
    ) as client:
        got = await client.embeddings.create(model="e", input="a tin whistle")
    assert got.data[0].embedding == [0.5, -0.25]
    assert len(asked(upstream, "a tin whistle")) == 1


def _end(finish: str) -> Any:
    return chat_chunk({}, finish_reason=finish)


def _usage() -> Any:
    return chat_chunk({}) | {"choices": [], "usage": USAGE}


def _read(chunks: list[Any], headers: Any) -> tuple[Any, ...]:
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    finish = [c.choices[0].finish_reason for c in chunks if c.choices][-1]
    return headers["x-cache"], text, finish, chunks[-1].usage.total_tokens
