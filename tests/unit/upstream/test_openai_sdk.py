"""Replayed answers as OpenAI's own client reads them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai import AsyncOpenAI

from service.upstream.answer import Answer, from_body, text_answer
from service.upstream.replay import replay_body, replay_stream
from tests.fakes.upstream import USAGE, FakeUpstream, Reply, chat_body

PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
    "embeddings": "/v1/embeddings",
}
MESSAGES: Any = [{"role": "user", "content": "When does the ferry leave?"}]
CALLS = [
    {"id": "call_a", "type": "function", "function": {"name": "tide", "arguments": '{"port": "Ostend"}'}},
    {"id": "call_b", "type": "function", "function": {"name": "moon", "arguments": "{}"}},
]
TEXT = "At noon, or when the tide allows it. " * 20


@pytest.fixture
async def client(upstream: FakeUpstream) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=upstream.url, api_key="none", max_retries=0) as made:
        yield made


def serve(upstream: FakeUpstream, answer: Answer, **request: Any) -> None:
    """A hit on `answer`: a body first, then streams."""
    chunks = list(replay_stream(answer, created=7, request=request)) if answer.endpoint != "embeddings" else []
    body = Reply(chunks=[replay_body(answer, created=7, request=request)], headers={"content-type": "application/json"})
    upstream.on(PATHS[answer.endpoint], body, Reply(chunks=chunks))


def chat(content: str | None = TEXT, **options: Any) -> Answer:
    answer = from_body("chat", chat_body(content, **options))
    assert answer
    return answer


async def test_chat_with_reasoning_and_usage(upstream: FakeUpstream, client: AsyncOpenAI) -> None:
    serve(upstream, chat(reasoning="Tides, then."), stream_options={"include_usage": True})
    ask = client.chat.completions
    body = await ask.create(model="m", messages=MESSAGES)
    said = body.choices[0].message
    assert (said.content, said.model_extra) == (TEXT, {"reasoning": "Tides, then."})
    assert body.usage
    assert body.usage.model_dump(exclude_none=True) == USAGE

    async with ask.stream(model="m", messages=MESSAGES, stream_options={"include_usage": True}) as stream:
        final = await stream.get_final_completion()
    streamed = final.choices[0]
    assert (streamed.message.content, streamed.finish_reason) == (TEXT, "stop")
    assert streamed.message.model_extra
    assert streamed.message.model_extra["reasoning"] == "Tides, then."
    assert final.usage
    assert final.usage.total_tokens == USAGE["total_tokens"]
    assert final.system_fingerprint == body.system_fingerprint

    chunks = [c async for c in await ask.create(model="m", messages=MESSAGES, stream=True)]
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == TEXT
    assert len({c.id for c in chunks}) == 1


async def test_chat_with_tool_calls(upstream: FakeUpstream, client: AsyncOpenAI) -> None:
    serve(upstream, chat(None, finish="tool_calls", tool_calls=CALLS))
    body = await client.chat.completions.create(model="m", messages=MESSAGES)
    async with client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
        final = await stream.get_final_completion()
    for choice in (body.choices[0], final.choices[0]):
        assert choice.finish_reason == "tool_calls"
        assert not choice.message.content
        got = [
            (call.id, call.type, call.function.name, call.function.arguments)  # type: ignore[union-attr] # not custom
            for call in choice.message.tool_calls or ()
        ]
        assert got == [
            ("call_a", "function", "tide", '{"port": "Ostend"}'),
            ("call_b", "function", "moon", "{}"),
        ]


async def test_several_choices(upstream: FakeUpstream, client: AsyncOpenAI) -> None:
    body = chat_body("one")
    body["choices"].append(chat_body("two")["choices"][0] | {"index": 1})
    answer = from_body("chat", body)
    assert answer
    serve(upstream, answer)
    await client.chat.completions.create(model="m", messages=MESSAGES, n=2)
    async with client.chat.completions.stream(model="m", messages=MESSAGES, n=2) as stream:
        final = await stream.get_final_completion()
    assert [choice.message.content for choice in final.choices] == ["one", "two"]


async def test_completions(upstream: FakeUpstream, client: AsyncOpenAI) -> None:
    serve(upstream, text_answer("completions", TEXT, "m"))
    body = await client.completions.create(model="m", prompt="When?")
    chunks = [c async for c in await client.completions.create(model="m", prompt="When?", stream=True)]
    assert body.choices[0].text == "".join(c.choices[0].text for c in chunks) == TEXT
    assert [c.choices[0].finish_reason for c in chunks[-2:]] == [None, "stop"]
    assert body.id.startswith("cmpl-")


async def test_responses(upstream: FakeUpstream, client: AsyncOpenAI) -> None:
    answer = text_answer("responses", TEXT, "m")
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "tide", "arguments": '{"a": 1}'}
    answer.body["output"].append(call | {"status": "completed"})
    serve(upstream, answer)
    body = await client.responses.create(model="m", input="When?")
    assert body.output_text == TEXT
    async with client.responses.stream(model="m", input="When?") as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert final.output_text == TEXT
    assert [item.type for item in final.output] == ["message", "function_call"]
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert body.id != final.id


async def test_embeddings(upstream: FakeUpstream, client: AsyncOpenAI) -> None:
    row = {"index": 0, "object": "embedding", "embedding": [0.5, -0.25]}
    stored = from_body("embeddings", {"object": "list", "model": "e", "data": [row], "usage": USAGE})
    assert stored
    serve(upstream, stored, encoding_format="base64")
    got = await client.embeddings.create(model="e", input="a")  # the client asks for base64 unseen
    assert upstream.calls[0].json["encoding_format"] == "base64"
    assert got.data[0].embedding == [0.5, -0.25]
