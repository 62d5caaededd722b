"""The LangChain cache with LangChain's own models: what hits, what misses, what comes back."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio
from calls import Cache

pytest.importorskip("langchain_core")

from langchain_core.language_models import FakeListLLM
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, Generation

from service.clients.langchain import PgSemcache

ASKED, CLOSE, FAR = "How do I prune a pear tree?", "How can I prune a pear tree?", "Who wrote this song?"
USAGE = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
CALL = {"name": "season", "args": {"tree": "pear"}, "id": "call-1", "type": "tool_call"}
ANSWER = AIMessage("In late winter.", id="run-1", usage_metadata=USAGE, response_metadata={"finish_reason": "stop"})
OTHER = AIMessage("Another answer.")


Connect = Callable[..., PgSemcache]


@pytest_asyncio.fixture
async def connect(cache: Cache) -> AsyncIterator[Connect]:
    made: list[PgSemcache] = []

    def connect(base_url: str = str(cache.http.base_url), name: str = cache.name, **options: Any) -> PgSemcache:
        made.append(PgSemcache(base_url, name, **options))
        return made[-1]

    yield connect
    for one in made:
        await one.client.aclose()


@pytest.fixture
def semcache(connect: Connect) -> PgSemcache:
    return connect()


def model(cache: PgSemcache, *answers: BaseMessage) -> FakeMessagesListChatModel:
    return FakeMessagesListChatModel(responses=[*(answers or (ANSWER,)), OTHER], cache=cache)


def test_a_paraphrase_hits_with_usage_and_without_the_run_that_made_it(semcache: PgSemcache) -> None:
    asked = model(semcache)
    assert asked.invoke(ASKED).text == "In late winter."
    for again in (ASKED, CLOSE):
        hit = asked.invoke(again)
        assert isinstance(hit, AIMessage)
        assert (hit.text, hit.id) == ("In late winter.", None)
        assert hit.usage_metadata is not None
        assert hit.usage_metadata.items() >= USAGE.items()
        assert hit.response_metadata["finish_reason"] == "stop"
    assert asked.invoke(FAR).text == "Another answer."


async def test_a_paraphrase_hits_in_async_calls_and_across_the_two_ways(semcache: PgSemcache) -> None:
    asked = model(semcache)
    assert (await asked.ainvoke(ASKED)).text == "In late winter."
    assert (await asked.ainvoke(CLOSE)).text == "In late winter."
    assert asked.invoke(CLOSE).text == "In late winter."
    assert (await asked.ainvoke(FAR)).text == "Another answer."


def test_one_cache_serves_one_event_loop_after_another(semcache: PgSemcache) -> None:
    async def ask(question: str) -> str:
        answer = await model(semcache).ainvoke(question)
        await semcache.client._here().aclose()
        return answer.text

    assert [asyncio.run(ask(question)) for question in (ASKED, CLOSE, CLOSE)] == ["In late winter."] * 3
    assert len(semcache.client._by_loop) == 1


IMAGE = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
SAID = [SystemMessage("Be brief."), HumanMessage("I have a garden."), AIMessage("Lovely."), HumanMessage(ASKED)]
OTHER_TALKS: dict[str, list[BaseMessage]] = {
    "system": [SystemMessage("Be long."), *SAID[1:]],
    "no system": SAID[1:],
    "history": [SAID[0], HumanMessage("I have an orchard."), *SAID[2:]],
    "no history": [SAID[0], SAID[3]],
    "name": [*SAID[:3], HumanMessage(ASKED, name="Ann")],
    "more turns": [*SAID, AIMessage("In winter."), HumanMessage(ASKED)],
    "an image": [*SAID[:3], HumanMessage([{"type": "text", "text": ASKED}, IMAGE])],
}


@pytest.mark.parametrize("talk", OTHER_TALKS.values(), ids=OTHER_TALKS)
def test_another_conversation_before_the_question_misses(semcache: PgSemcache, talk: list[BaseMessage]) -> None:
    asked = model(semcache)
    asked.invoke(SAID)
    assert asked.invoke([*SAID[:3], HumanMessage(CLOSE)]).text == "In late winter."
    assert asked.invoke(talk).text == "Another answer."


def test_turns_that_differ_in_ids_and_bookkeeping_alone_are_the_same_history(semcache: PgSemcache) -> None:
    def talk(run: str, question: str) -> list[BaseMessage]:
        call = AIMessage(
            "", id=run, tool_calls=[CALL | {"id": run}], usage_metadata=USAGE, response_metadata={"r": run}
        )
        said = [HumanMessage("Which season?"), call, ToolMessage("winter", tool_call_id=run), AIMessage("Winter.")]
        return [*said, HumanMessage(question)]

    asked = model(semcache)
    asked.invoke(talk("a", ASKED))
    assert asked.invoke(talk("b", CLOSE)).text == "In late winter."


@pytest.mark.parametrize("options", [{"temperature": 0.5}, {"top_k": 3}, {"stop": ["."]}, {"model": "m-2"}], ids=str)
def test_another_model_or_sampling_misses(semcache: PgSemcache, options: dict[str, Any]) -> None:
    asked = model(semcache)
    asked.invoke(ASKED)
    assert asked.invoke(CLOSE, **options).text == "Another answer."
    assert asked.invoke(CLOSE).text == "In late winter."


def test_tool_calls_come_back(semcache: PgSemcache) -> None:
    asked = model(semcache, AIMessage("", tool_calls=[CALL], response_metadata={"finish_reason": "tool_calls"}))
    asked.invoke(ASKED)
    hit = asked.invoke(CLOSE)
    assert isinstance(hit, AIMessage)
    assert hit.tool_calls == [CALL]


def test_after_a_tools_result_only_the_same_conversation_hits(semcache: PgSemcache) -> None:
    def talk(run: str, question: str, result: str = "winter") -> list[BaseMessage]:
        call = AIMessage("", tool_calls=[CALL | {"id": run}])
        return [HumanMessage(question), call, ToolMessage(result, tool_call_id=run)]

    asked = model(semcache)
    asked.invoke(talk("a", ASKED))
    assert asked.invoke(talk("b", ASKED)).text == "In late winter."
    assert asked.invoke(talk("a", CLOSE)).text == "Another answer."
    asked = model(semcache, AIMessage("Not in summer."))
    assert asked.invoke(talk("a", ASKED, "summer")).text == "Not in summer."
    assert asked.invoke(ASKED).text == "Another answer."


@pytest.mark.parametrize("reason", ["length", "content_filter", "MAX_TOKENS"])
def test_an_incomplete_answer_is_not_stored(semcache: PgSemcache, cache: Cache, reason: str) -> None:
    asked = model(semcache, AIMessage("In late", response_metadata={"finish_reason": reason}))
    asked.invoke(ASKED)
    assert cache.listed() == []
    assert asked.invoke(ASKED).text == "Another answer."


def test_a_plain_llm_is_cached_with_its_generation_info(semcache: PgSemcache) -> None:
    llm = FakeListLLM(responses=["In late winter.", "Another answer."], cache=semcache)
    assert [llm.invoke(prompt) for prompt in (ASKED, CLOSE, FAR)] == [*["In late winter."] * 2, "Another answer."]
    semcache.update(ASKED, "llm", [Generation(text="a", generation_info={"seed": 7}), Generation(text="b")])
    found = semcache.lookup(CLOSE, "llm")
    assert found == [Generation(text="a", generation_info={"seed": 7}), Generation(text="b")]
    assert semcache.lookup(CLOSE, "another llm") is None


def test_entries_carry_the_models_name_and_none_of_its_other_parameters(semcache: PgSemcache, cache: Cache) -> None:
    named = {"lc": 1, "type": "constructor", "kwargs": {"model_name": "m-1", "temperature": 0, "base_url": "secret"}}
    semcache.update(ASKED, json.dumps(named) + "---[('stop', None)]", [Generation(text="a")])
    (entry,) = cache.listed()
    assert (entry["model"], entry["prompt"]) == ("m-1", ASKED)
    assert "secret" not in json.dumps(entry)


async def test_clear_flushes(semcache: PgSemcache) -> None:
    asked = model(semcache)
    asked.invoke(ASKED)
    semcache.clear()
    assert asked.invoke(ASKED).text == "Another answer."
    assert (await asked.ainvoke(ASKED)).text == "Another answer."
    await semcache.aclear()
    assert (await asked.ainvoke(ASKED)).text == "In late winter."


async def test_a_cache_that_nobody_answers_for_breaks_no_call(
    connect: Connect, nobody: str, caplog: pytest.LogCaptureFixture
) -> None:
    dead = connect(nobody)
    asked = model(dead)
    assert asked.invoke(ASKED).text == "In late winter."
    assert (await asked.ainvoke(ASKED)).text == "Another answer."
    warned = [record for record in caplog.records if record.name == "semcache.clients"]
    assert [record.levelno for record in warned] == [logging.WARNING] * 4
    assert "ConnectError" in caplog.text
    assert "pear" not in caplog.text
    with pytest.raises(httpx.ConnectError):
        dead.clear()


def test_a_refusal_and_an_unreadable_entry_break_no_call(
    connect: Connect, semcache: PgSemcache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert model(connect(name="no-such-cache")).invoke(ASKED).text == "In late winter."
    assert "status 404, cache_not_found" in caplog.text
    with monkeypatch.context() as patched:
        patched.setattr("service.clients.langchain._dumped", lambda _: "[{}]")
        model(semcache).invoke(ASKED)
    assert model(semcache, AIMessage("Asked again.")).invoke(ASKED).text == "Asked again."
    assert "KeyError" in caplog.text


def test_what_only_an_address_names_is_not_cached(semcache: PgSemcache, cache: Cache) -> None:
    found = [ChatGeneration(message=ANSWER)]
    semcache.update(dumps([HumanMessage(ASKED)]), f"[('client', {object()})]", found)
    semcache.update(dumps([HumanMessage(ASKED, additional_kwargs={"source": object()})]), "llm", found)
    assert cache.listed() == []


def test_a_threshold_and_a_lifetime_can_be_given(connect: Connect, cache: Cache) -> None:
    strict, semcache = connect(threshold=0.9999, ttl=60), connect()
    model(strict).invoke(ASKED)
    (entry,) = cache.listed()
    assert entry["expiresAt"] is not None
    assert model(semcache, AIMessage("Asked again.")).invoke(CLOSE).text == "In late winter."
    assert model(strict, AIMessage("Asked again.")).invoke(CLOSE).text == "Asked again."
