"""A client of a real vLLM cannot tell a stored answer from a new one, as body or as stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from calls import Cache
from openai import AsyncOpenAI, OpenAI
from running import Service

from tests.vllm.said import Seen, ask_chat, kept, shown_usage
from tests.vllm.server import MODEL

QUESTION = "When does the ferry leave?"
TALK: Any = [{"role": "user", "content": QUESTION}]
TIDE = {
    "type": "function",
    "function": {
        "name": "tide",
        "description": "Look up a tide",
        "parameters": {"type": "object", "properties": {"port": {"type": "string"}}},
    },
}
TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
TURNS = [
    {"role": "user", "content": "Look it up."},
    {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "high at noon"},
]

REQUESTS: dict[str, dict[str, Any]] = {
    "sampled": {"seed": 4},
    "greedy": {"temperature": 0, "structured_outputs": {"choice": ["at noon", "at dusk"]}},
    "regex": {"seed": 1, "structured_outputs": {"regex": "(noon|dusk) [0-9]{4}"}},
    "named tool": {"seed": 1, "tools": [TIDE], "tool_choice": {"type": "function", "function": {"name": "tide"}}},
    "required tool": {"seed": 1, "tools": [TIDE], "tool_choice": "required"},
    "reasoning": {"seed": 15, "chat_template_kwargs": {"thinking": True}},
    "several": {"seed": 1, "n": 3},
    "logprobs": {"seed": 3, "logprobs": True, "top_logprobs": 2},
    "tool result": {"seed": 3, "messages": TURNS},
}


@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
@pytest.mark.parametrize("kind", REQUESTS)
async def test_chat_is_the_same_however_it_comes(
    direct: AsyncOpenAI, cached: AsyncOpenAI, kind: str, stream: bool
) -> None:
    request = {"messages": TALK} | REQUESTS[kind]
    await ask_chat(direct, **request)  # usage counts what vLLM itself has cached
    new = await ask_chat(direct, **request, stream=stream)
    missed = await ask_chat(cached, **request, stream=stream)
    other = await kept(lambda: ask_chat(cached, **request, stream=not stream))
    again = await ask_chat(cached, **request, stream=stream)
    assert [said.cache for said in (new, missed, again)] == [None, "MISS", "HIT"]
    assert new == missed == other == again
    assert other.headers["x-cache-entry-id"] == again.headers["x-cache-entry-id"]
    assert len({said.id for said in (new, missed, other, again)}) == 4


async def test_what_is_compared_is_there(direct: AsyncOpenAI) -> None:
    said = {kind: await ask_chat(direct, **({"messages": TALK} | fields)) for kind, fields in REQUESTS.items()}
    assert all(
        choice.content for kind in ("sampled", "several", "tool result") for choice in said[kind].choices.values()
    )
    assert said["greedy"].text in ("at noon", "at dusk")
    assert [said[kind].choices[0].calls[0][0] for kind in ("named tool", "required tool")] == ["tide", "tide"]
    assert [said[kind].choices[0].finish for kind in ("named tool", "required tool")] == ["stop", "tool_calls"]
    assert said["reasoning"].choices[0].reasoning
    assert said["reasoning"].text
    assert len(said["several"].choices) == 3
    assert len(said["logprobs"].choices[0].logprobs) == said["logprobs"].usage["completion_tokens"]  # type: ignore[index]


@dataclass
class Completed(Seen):
    """An answer of another endpoint. kinds: of the events of a stream."""

    shown: Any
    kinds: list[str] = field(default_factory=list, compare=False)


async def ask_completion(client: AsyncOpenAI, *, stream: bool) -> Completed:
    request: dict[str, Any] = {"model": MODEL, "prompt": QUESTION, "seed": 3, "max_tokens": 200}
    if not stream:
        raw = await client.completions.with_raw_response.create(**request)
        body = raw.parse()
        (choice,) = body.choices
        shown = choice.text, choice.finish_reason
        return Completed(raw.headers, body.id, body.model, shown_usage(body.usage), shown)
    events = await client.completions.create(**request, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in events]
    pieces = [choice for chunk in chunks for choice in chunk.choices]
    shown = "".join(piece.text for piece in pieces), pieces[-1].finish_reason
    return Completed(events.response.headers, chunks[0].id, chunks[0].model, shown_usage(chunks[-1].usage), shown)


async def ask_response(client: AsyncOpenAI, *, stream: bool) -> Completed:
    request: dict[str, Any] = {"model": MODEL, "input": QUESTION, "extra_body": {"seed": 4}}
    if not stream:
        raw = await client.responses.with_raw_response.create(**request)
        headers, body, kinds = raw.headers, raw.parse(), []
    else:
        events = await client.responses.create(**request, stream=True)
        seen = [event async for event in events]
        headers, body, kinds = events.response.headers, seen[-1].response, sorted({event.type for event in seen})
    shown = body.model_dump(exclude={"id", "created_at", "metrics"})
    for item in shown["output"]:
        del item["id"]
    return Completed(headers, body.id, body.model, shown_usage(body.usage), shown, kinds)


@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
@pytest.mark.parametrize("ask", [ask_completion, ask_response])
async def test_other_endpoints_answer_the_same_however_it_comes(
    direct: AsyncOpenAI, cached: AsyncOpenAI, ask: Callable[..., Awaitable[Completed]], stream: bool
) -> None:
    new = await ask(direct, stream=stream)
    missed = await ask(cached, stream=stream)
    other = await kept(lambda: ask(cached, stream=not stream))
    again = await ask(cached, stream=stream)
    assert [seen.cache for seen in (new, missed, again)] == [None, "MISS", "HIT"]
    assert new == missed == other == again
    assert new.usage
    assert len({seen.id for seen in (new, missed, other, again)}) == 4
    assert (await ask(direct, stream=True)).kinds == (other if other.kinds else again).kinds


def test_the_client_without_async_is_answered_too(proxy: Service, cache: Cache) -> None:
    headers = {"x-cache-namespace": cache.name}
    with OpenAI(base_url=f"{proxy.base}/v1", api_key="none", max_retries=0, default_headers=headers) as client:
        body = client.chat.completions.create(model=MODEL, messages=TALK, seed=4)
        with client.chat.completions.create(model=MODEL, messages=TALK, seed=4, stream=True) as stream:
            chunks = list(stream)
            assert stream.response.headers["x-cache"] in ("COALESCED", "HIT")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == body.choices[0].message.content
    assert all(chunk.usage is None for chunk in chunks)


@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
async def test_an_answer_that_was_cut_short_is_not_kept(cached: AsyncOpenAI, stream: bool) -> None:
    request: dict[str, Any] = {"messages": TALK, "temperature": 0, "max_tokens": 3, "min_tokens": 3}
    said = [await ask_chat(cached, **request, stream=stream) for _ in range(2)]
    assert [(one.cache, one.choices[0].finish) for one in said] == [("MISS", "length")] * 2


async def test_other_sampling_is_another_answer(cached: AsyncOpenAI) -> None:
    one, other = [await ask_chat(cached, messages=TALK, seed=seed) for seed in (4, 5)]
    assert (one.cache, other.cache) == ("MISS", "MISS")
    assert one.text != other.text
