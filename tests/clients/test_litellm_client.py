"""The LiteLLM cache with LiteLLM itself, whose `mock_response` stands for the model."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from calls import Cache
from pydantic import BaseModel

pytest.importorskip("litellm")

import litellm

from service.clients.litellm import Backend, PgSemcache

pytestmark = pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier:UserWarning")  # LiteLLM's own types

ASKED, CLOSE, FAR = "How do I prune a pear tree?", "How can I prune a pear tree?", "Who wrote this song?"
SAID = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "I have a garden."},
    {"role": "assistant", "content": "Lovely."},
    {"role": "user", "content": "With pears."},
    {"role": "assistant", "content": "Even better."},
]
CALL = {"id": "call_1", "type": "function", "function": {"name": "season", "arguments": '{"tree": "pear"}'}}
Connect = Callable[..., PgSemcache]
Stored = Callable[[int], Awaitable[None]]


@pytest_asyncio.fixture
async def connect(cache: Cache) -> AsyncIterator[Connect]:
    """Makes a cache and plugs it in."""

    def connect(base_url: str = str(cache.http.base_url), name: str = cache.name, **options: Any) -> PgSemcache:
        made.append(PgSemcache(base_url, name, **options))
        litellm.cache = made[-1]
        return made[-1]

    made: list[PgSemcache] = []
    yield connect
    for one in made:
        await one.disconnect()
    litellm.disable_cache()


@pytest.fixture
def stored(cache: Cache) -> Stored:
    """Waits until so many entries are there: LiteLLM stores after it has answered."""

    async def stored(count: int) -> None:
        await until(lambda: len(cache.listed()) == count)

    return stored


async def until(comes_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not comes_true():
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.005)


def call(question: str, answer: str = "Another answer.", **changed: Any) -> dict[str, Any]:
    messages = [*SAID, {"role": "user", "content": question}]
    return {"model": "hosted_vllm/m-1", "messages": messages, "temperature": 0.2, "mock_response": answer} | changed


def complete(question: str, answer: str = "Another answer.", **changed: Any) -> str:
    return str(litellm.completion(**call(question, answer, **changed)).choices[0].message.content)


async def acomplete(question: str, answer: str = "Another answer.", **changed: Any) -> str:
    return str((await litellm.acompletion(**call(question, answer, **changed))).choices[0].message.content)


async def test_a_paraphrase_hits_blocking_and_async(connect: Connect, stored: Stored) -> None:
    connect()
    assert complete(ASKED, "In late winter.") == "In late winter."
    await stored(1)
    assert [complete(ASKED), complete(CLOSE), complete(FAR)] == [*["In late winter."] * 2, "Another answer."]
    assert [await acomplete(ASKED), await acomplete(CLOSE)] == ["In late winter."] * 2
    hit = litellm.completion(**call(CLOSE))
    assert hit._hidden_params["cache_hit"] is True
    assert hit.usage.total_tokens == 30


async def test_an_async_call_stores_too(connect: Connect, stored: Stored) -> None:
    connect()
    assert await acomplete(ASKED, "In late winter.") == "In late winter."
    await stored(1)
    assert [await acomplete(CLOSE), complete(CLOSE)] == ["In late winter."] * 2


async def test_streams_and_bodies_share_answers(connect: Connect, stored: Stored) -> None:
    connect()
    assert await astream(ASKED, "In late winter.") == "In late winter."
    await stored(1)
    assert complete(CLOSE) == "In late winter."
    assert await astream(CLOSE) == "In late winter."
    chunks = litellm.completion(**call(CLOSE), stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "In late winter."


async def astream(question: str, answer: str = "Another answer.") -> str:
    chunks = await litellm.acompletion(**call(question, answer), stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])


class Season(BaseModel):
    name: str


OTHERS: dict[str, dict[str, Any]] = {
    "model": {"model": "hosted_vllm/m-2"},
    "temperature": {"temperature": 0.5},
    "max_tokens": {"max_tokens": 5},
    "top_k": {"top_k": 3},
    "min_p": {"min_p": 0.1},
    "repetition_penalty": {"repetition_penalty": 1.1},
    "chat_template_kwargs": {"chat_template_kwargs": {"enable_thinking": False}},
    "extra_body": {"extra_body": {"guided_regex": "a+"}},
    "cache_salt": {"extra_body": {"cache_salt": "s"}},
    "tools": {"tools": [{"type": "function", "function": {"name": "season", "parameters": {}}}]},
    "response_format": {"response_format": {"type": "json_object"}},
    "response model": {"response_format": Season},
    "api_base": {"api_base": "http://elsewhere/v1"},
    "extra_headers": {"extra_headers": {"x-lora": "b"}},
    "prompt template": {"prompt_variables": {"tone": "dry"}},
    "namespace": {"cache": {"namespace": "n"}},
    "team": {"metadata": {"user_api_key_team_id": "t"}},
    "system": {"messages": [{"role": "system", "content": "Be long."}, {"role": "user", "content": ASKED}]},
    "history": {"messages": [SAID[0], {"role": "user", "content": ASKED}]},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_any_other_argument_misses(connect: Connect, stored: Stored, cache: Cache, other: dict[str, Any]) -> None:
    connect()
    complete(ASKED, "In late winter.")
    await stored(1)
    assert complete(ASKED, **other) == "Another answer."
    await stored(2)
    assert complete(ASKED, "A third one.", **other) == "Another answer."
    assert complete(CLOSE) == "In late winter."


async def test_arguments_that_change_nothing_do_not_part(connect: Connect, stored: Stored) -> None:
    connect()
    complete(ASKED, "In late winter.", metadata={"trace": "a"}, timeout=5, api_key="k-1")
    await stored(1)
    assert complete(CLOSE, metadata={"trace": "b"}, timeout=9, num_retries=2, api_key="k-2") == "In late winter."


async def test_deployments_of_one_group_are_one_model(connect: Connect, stored: Stored) -> None:
    connect()
    group = {"metadata": {"model_group": "g"}}
    complete(ASKED, "In late winter.", api_base="http://a/v1", **group)
    await stored(1)
    assert complete(CLOSE, api_base="http://b/v1", **group) == "In late winter."
    assert complete(CLOSE, api_base="http://b/v1") == "Another answer."


async def test_tool_calls_come_back(connect: Connect, stored: Stored) -> None:
    connect()
    litellm.completion(**call(ASKED, "", mock_tool_calls=[CALL]))
    await stored(1)
    hit = litellm.completion(**call(CLOSE, "", mock_tool_calls=[CALL]))
    assert hit._hidden_params["cache_hit"] is True
    (found,) = hit.choices[0].message.tool_calls
    assert (found.id, found.function.name, found.function.arguments) == ("call_1", "season", '{"tree": "pear"}')


async def test_after_a_tools_result_only_the_same_conversation_hits(connect: Connect, stored: Stored) -> None:
    def talk(call_id: str, question: str) -> dict[str, Any]:
        turn = {"role": "assistant", "content": None, "tool_calls": [CALL | {"id": call_id}]}
        result = {"role": "tool", "tool_call_id": call_id, "content": "winter"}
        return {"messages": [{"role": "user", "content": question}, turn, result]}

    connect()
    complete("", "In late winter.", **talk("a", ASKED))
    await stored(1)
    assert complete("", **talk("b", ASKED)) == "In late winter."
    assert complete("", **talk("a", CLOSE)) == "Another answer."


async def test_litellms_controls_work(connect: Connect, stored: Stored, cache: Cache) -> None:
    connect()
    complete(ASKED, "Not kept.", cache={"no-store": True})
    complete(ASKED, "Not kept.", cache={"ttl": 0})
    complete(ASKED, "In late winter.", cache={"ttl": 60})
    await stored(1)
    (entry,) = cache.listed()
    assert entry["expiresAt"] is not None
    assert complete(CLOSE, cache={"s-maxage": 1e-9}) == "Another answer."
    assert (await acomplete(FAR, cache={"no-cache": True})) == "Another answer."
    await stored(3)


async def test_an_incomplete_answer_is_not_stored(connect: Connect, cache: Cache) -> None:
    backend = connect().backend
    body = '{"choices": [{"finish_reason": "length", "message": {"content": "In late"}}]}'
    backend.set_cache("key", {"timestamp": 0.0, "response": body}, **call(ASKED))
    assert cache.listed() == []
    whole = {"timestamp": 0.0, "response": body.replace("length", "stop")}
    backend.set_cache("key", whole, **call(ASKED))
    assert await backend.async_get_cache("key", **call(CLOSE)) == whole
    assert backend.get_cache("key", messages=call(CLOSE)["messages"]) is None


async def test_lists_of_answers_are_stored_and_a_flush_takes_all(connect: Connect, cache: Cache) -> None:
    backend = connect().backend
    kept = {"timestamp": 0.0, "response": '{"choices": [{"finish_reason": "stop"}]}'}
    await backend.async_set_cache_pipeline([("a", kept)], **call(ASKED))
    await backend.batch_cache_write("b", kept, **call(FAR))
    assert len(cache.listed()) == 2
    assert await backend.test_connection() == {"status": "success", "message": "The cache answers"}
    backend.flush_cache()
    assert backend.get_cache("a", **call(ASKED)) is None


async def test_the_backend_alone_serves_async_calls(connect: Connect, stored: Stored) -> None:
    backend: Backend = connect().backend
    litellm.cache = litellm.Cache(_backend=backend, max_messages=None)
    await acomplete(ASKED, "In late winter.")
    await stored(1)
    assert await acomplete(CLOSE) == "In late winter."
    assert complete(CLOSE) == "Another answer."


async def test_a_cache_that_nobody_answers_for_breaks_no_call(
    connect: Connect, nobody: str, caplog: pytest.LogCaptureFixture
) -> None:
    dead = connect(nobody)
    assert complete(ASKED, "In late winter.") == "In late winter."
    assert await acomplete(ASKED, "In late winter.") == "In late winter."
    assert (await dead.backend.test_connection())["status"] == "failed"

    def warned() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == "semcache.clients"]

    await until(lambda: len(warned()) == 4)
    assert {record.levelno for record in warned()} == {logging.WARNING}
    assert not any("pear" in record.getMessage() for record in warned())
