"""Follow-up questions under each `context` of a cache's policy, with a resolver that tests script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asking import Asker, asked, says
from conftest import NewDatabase
from running import running_service

from service.settings import Settings
from tests.fakes.upstream import FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

RESOLVER = "resolver-of-questions"
WHALES, SHARKS, LOUD = "Tell me about blue whales.", "Tell me about mako sharks.", "How loud are they?"
FOLLOW_UP, ALONE = "What do they eat?", "What do blue whales eat?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rewriting(upstream: FakeUpstream, new_database: NewDatabase) -> AsyncIterator[str]:
    """The address of a service that has a resolver."""
    with new_database() as url:
        settings = Settings(database_url=url, upstream=upstream.url, resolver_url=upstream.url, resolver_model=RESOLVER)
        context = running_service(settings)
        yield (await asyncio.to_thread(context.__enter__)).base
        await asyncio.to_thread(context.__exit__, None, None, None)


@pytest_asyncio.fixture(loop_scope="module")
async def talker(upstream: FakeUpstream, rewriting: str) -> AsyncIterator[Asker]:
    says(upstream, "/v1/chat/completions", *(f"Answer {i}." for i in range(50)))
    async with Asker(rewriting) as made:
        await made.new_cache(context="rewritten")
        yield made


def talk(*texts: str) -> dict[str, Any]:
    """A chat of user messages, each answered but the last."""
    messages = []
    for text in texts:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]
    return {"model": "small-chat", "temperature": 0, "messages": messages[:-1]}


async def stored(asker: Asker, *texts: str) -> str | None:
    """Ask until the answer is stored; the answer."""
    return (await asker.stored(talk(*texts))).text


async def test_the_last_turns_alone(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "/v1/chat/completions", *(f"Answer {i}." for i in range(50)))
    await asker.new_cache(context="last_turns(2)")
    kept = await stored(asker, WHALES, LOUD, FOLLOW_UP)
    got = await asker.ask(talk(SHARKS, LOUD, FOLLOW_UP))
    assert (got.cache, got.text) == ("SEMANTIC-HIT", kept)
    assert (await asker.ask(talk(LOUD, SHARKS, FOLLOW_UP))).cache == "MISS"


async def test_the_whole_conversation_by_default(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "/v1/chat/completions", *(f"Answer {i}." for i in range(50)))
    await stored(asker, WHALES, LOUD, FOLLOW_UP)
    assert (await asker.ask(talk(SHARKS, LOUD, FOLLOW_UP))).cache == "MISS"


async def test_a_follow_up_is_served_by_the_question_that_it_means(upstream: FakeUpstream, talker: Asker) -> None:
    upstream.on(RESOLVER, Reply(json=chat_body(ALONE)))
    kept = await stored(talker, ALONE)
    got = await talker.ask(talk(WHALES, LOUD, FOLLOW_UP))
    assert (got.cache, got.text) == ("SEMANTIC-HIT", kept)
    (call,) = asked(upstream, RESOLVER)
    assert call.json["temperature"] == 0
    assert all(text in call.json["messages"][1]["content"] for text in (WHALES, LOUD, FOLLOW_UP))


async def test_it_is_rewritten_once(upstream: FakeUpstream, talker: Asker) -> None:
    upstream.on(RESOLVER, Reply(json=chat_body("What do mako sharks eat at night?")))
    for model in ("small-chat", "other-chat", "third-chat"):
        await talker.stored(talk(SHARKS, "At night?") | {"model": model})
    assert len(asked(upstream, RESOLVER)) == 1
    prompts = (await talker.http.get(f"/v1/caches/{talker.cache}/entries")).json()["data"]
    assert {entry["prompt"] for entry in prompts} == {"What do mako sharks eat at night?"}


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500, json={}),
        Reply(json=chat_body("Krill. They eat four tons\na day.")),
        Reply(json=chat_body("cut", finish="length")),
        Reply(json={"choices": []}),
        Reply(drop=True),
    ],
    ids=["fails", "answers instead", "cut", "nothing", "hangs up"],
)
async def test_what_was_not_rewritten_is_matched_exactly(upstream: FakeUpstream, talker: Asker, reply: Reply) -> None:
    kept = await stored(talker, ALONE)
    upstream.on(RESOLVER, reply)
    got = await talker.ask(talk(WHALES, FOLLOW_UP))
    assert (got.cache, got.reason) == ("MISS", "not_rewritten")
    assert got.text != kept
    again = await talker.stored(talk(WHALES, FOLLOW_UP))
    assert (again.cache, again.text) == ("HIT", got.text)


async def test_a_resolver_that_hangs_is_not_waited_for(upstream: FakeUpstream, start: Start) -> None:
    says(upstream, "/v1/chat/completions", "Fish.")
    upstream.on(RESOLVER, Reply(hold=asyncio.Event()))
    service = await start(resolver_url=upstream.url, resolver_model=RESOLVER, resolver_timeout=0.5)
    async with Asker(service.base) as talker:
        await talker.new_cache(context="rewritten")
        got = await talker.ask(talk(WHALES, "And in winter?"))
    assert (got.status, got.cache, got.reason) == (200, "MISS", "not_rewritten")


async def test_the_data_api_rewrites_too(upstream: FakeUpstream, talker: Asker) -> None:
    upstream.on(RESOLVER, Reply(json=chat_body(ALONE)))
    path = f"/v1/caches/{talker.cache}/entries"
    history = {"history": talk(WHALES, "x")["messages"][:-1]}
    made = await talker.http.post(path, json={"prompt": FOLLOW_UP, "response": "Krill.", "scope": history})
    assert made.json()["exactOnly"] is None
    found = await talker.http.post(f"{path}/search", json={"prompt": ALONE})
    assert [(row["prompt"], row["response"]) for row in found.json()["data"]] == [(ALONE, "Krill.")]
    other = {"history": talk(WHALES, LOUD, "x")["messages"][:-1]}
    found = await talker.http.post(f"{path}/search", json={"prompt": FOLLOW_UP, "scope": other, "explain": True})
    assert [row["response"] for row in found.json()["data"]] == ["Krill."]
    assert found.json()["explanation"]["neighbours"][0]["prompt"] == ALONE


async def test_when_the_resolver_is_gone_only_exact_repeats_are_served(upstream: FakeUpstream, start: Start) -> None:
    says(upstream, "/v1/chat/completions", *(f"Answer {i}." for i in range(50)))
    async with Asker((await start(resolver_url=upstream.url, resolver_model="resolver")).base) as asker:
        await asker.new_cache(context="rewritten")
    async with Asker((await start()).base, cache=asker.cache) as asker:
        await stored(asker, ALONE)
        got = await asker.ask(talk(WHALES, FOLLOW_UP))
        assert (got.cache, got.reason) == ("MISS", "not_rewritten")
        assert (await asker.stored(talk(WHALES, FOLLOW_UP))).cache == "HIT"
