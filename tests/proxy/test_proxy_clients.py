"""LangChain's and LiteLLM's own clients read a stored answer as they read the model's: streams, tool calls, counts."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asking import Asker
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.fakes.upstream import USAGE, FakeUpstream, Reply, chat_body

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # read at import: no download of a price list
import litellm

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier:UserWarning"),  # LiteLLM's own, as the next
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]

SAID: dict[str, Any] = {"content": "At noon."}
CALLED: dict[str, Any] = {
    "content": None,
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "tide", "arguments": '{"at": "quay"}'}}],
}
TOOL = {"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}
ANSWERS = pytest.mark.parametrize(
    ("said", "finish"), [(SAID, "stop"), (CALLED, "tool_calls")], ids=["text", "tool call"]
)
Read = tuple[str, list[tuple[str, Any]], str, int]


def expected(said: dict[str, Any], finish: str) -> Read:
    calls = [("tide", {"at": "quay"})] if said is CALLED else []
    return said["content"] or "", calls, finish, USAGE["total_tokens"]


async def hit(ask: Callable[[], Awaitable[tuple[str, Read]]]) -> Read:
    """What is read once the stored answer comes."""
    async with asyncio.timeout(20):
        while True:
            cache, read = await ask()
            if cache == "HIT":
                return read


@ANSWERS
async def test_langchain(upstream: FakeUpstream, asker: Asker, said: dict[str, Any], finish: str) -> None:
    upstream.on("ebb", Reply(json=chat_body(finish=finish, **said)))
    model = ChatOpenAI(
        model="small-chat",
        temperature=0,
        base_url=f"{asker.base}/v1",
        api_key=SecretStr("none"),
        default_headers={"x-cache-namespace": asker.cache},
        include_response_headers=True,
        stream_usage=True,
    ).bind_tools([TOOL])

    def read(message: AIMessage) -> tuple[str, Read]:
        calls = [(call["name"], call["args"]) for call in message.tool_calls]
        told, usage = message.response_metadata, message.usage_metadata
        assert usage is not None
        return told["headers"]["x-cache"], (str(message.content), calls, told["finish_reason"], usage["total_tokens"])

    async def whole() -> tuple[str, Read]:
        return read(await model.ainvoke("When is the ebb?"))

    async def streamed() -> tuple[str, Read]:
        first, *rest = [chunk async for chunk in model.astream("When is the ebb?")]
        assert isinstance(first, AIMessageChunk)
        return read(sum(rest, first))

    assert (await whole()) == ("MISS", expected(said, finish))
    assert await hit(whole) == await hit(streamed) == expected(said, finish)


@ANSWERS
async def test_litellm(upstream: FakeUpstream, asker: Asker, said: dict[str, Any], finish: str) -> None:
    upstream.on("neap", Reply(json=chat_body(finish=finish, **said)))
    messages = [{"role": "user", "content": "When is the neap tide?"}]
    asked: dict[str, Any] = {
        "model": "hosted_vllm/small-chat",
        "api_base": f"{asker.base}/v1",
        "api_key": "none",
        "extra_headers": {"x-cache-namespace": asker.cache},
        "messages": messages,
        "temperature": 0,
        "tools": [TOOL],
    }

    def read(answer: Any) -> Read:
        choice = answer.choices[0]
        functions = [call.function for call in choice.message.tool_calls or ()]
        calls = [(function.name, json.loads(function.arguments)) for function in functions]
        return choice.message.content or "", calls, choice.finish_reason, answer.usage.total_tokens

    async def whole() -> tuple[str, Read]:
        answer = await litellm.acompletion(**asked)
        return answer._hidden_params["additional_headers"]["llm_provider-x-cache"], read(answer)

    async def streamed() -> tuple[str, Read]:
        stream = await litellm.acompletion(**asked, stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]
        headers = stream._hidden_params["additional_headers"]
        return headers["llm_provider-x-cache"], read(litellm.stream_chunk_builder(chunks, messages=messages))

    assert (await whole()) == ("MISS", expected(said, finish))
    assert await hit(whole) == await hit(streamed) == expected(said, finish)
