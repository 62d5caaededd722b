"""Flushes, bulk deletes and changes of the policy part the calls to the model that were begun before and after them."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from asking import Asker, chat, reached

from tests.fakes.upstream import FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHANGES = {
    "flush": ("POST", "/flush", None),
    "bulk delete": ("DELETE", "/entries", {"tags": ["none has it"]}),
    "policy": ("PATCH", "", {"policy": {"ttlMillis": 60_000}}),
}


async def change(asker: Asker, what: str) -> None:
    method, path, body = CHANGES[what]
    await send(asker, method, path, body)


async def send(asker: Asker, method: str, path: str, body: object = None) -> httpx.Response:
    got = await asker.http.request(method, f"/v1/caches/{asker.cache}{path}", json=body, headers=asker.headers())
    assert got.is_success, got.text
    return got


async def noted(misses: int, *replicas: Asker) -> None:
    """Return when so many misses are in the log: their answers are stored by then, or never will be."""
    async with asyncio.timeout(20):
        while max([(await send(each, "GET", "/stats")).json()["misses"] for each in replicas]) < misses:
            pass


@pytest.mark.parametrize("what", CHANGES)
async def test_a_call_from_before_is_neither_joined_nor_stored(upstream: FakeUpstream, asker: Asker, what: str) -> None:
    old, new = asyncio.Event(), asyncio.Event()
    upstream.on("lighthouse", Reply(json=chat_body("Old."), hold=old), Reply(json=chat_body("New."), hold=new))
    body = chat("Who keeps the lighthouse?")
    before = asyncio.create_task(asker.ask(body))
    await reached(upstream, "lighthouse")
    await change(asker, what)
    after = asyncio.create_task(asker.ask(body))
    await reached(upstream, "lighthouse", 2)
    new.set()
    assert ((await after).text, (await after).cache) == ("New.", "MISS")
    assert (await asker.stored(body)).text == "New."
    old.set()
    assert (await before).text == "Old."
    await noted(2, asker)
    assert [(await asker.ask(body)).text for _ in range(3)] == ["New."] * 3


async def test_an_answer_is_not_stored_in_a_cache_that_was_switched_off(upstream: FakeUpstream, asker: Asker) -> None:
    hold = asyncio.Event()
    upstream.on("mill", Reply(json=chat_body("Flour."), hold=hold))
    before = asyncio.create_task(asker.ask(chat("What does the mill make?")))
    await reached(upstream, "mill")
    await send(asker, "PATCH", "", {"policy": {"mode": "off"}})
    hold.set()
    assert (await before).text == "Flour."
    await noted(1, asker)
    assert (await send(asker, "GET", "/entries")).json()["data"] == []


async def test_a_cache_of_the_same_name_begins_anew(upstream: FakeUpstream, asker: Asker) -> None:
    hold = asyncio.Event()
    upstream.on("orchard", Reply(json=chat_body("Old."), hold=hold), Reply(json=chat_body("New.")))
    body = chat("What grows in the orchard?")
    before = asyncio.create_task(asker.ask(body))
    await reached(upstream, "orchard")
    await send(asker, "DELETE", "")
    assert (await asker.http.post("/v1/caches", json={"name": asker.cache})).status_code == 201
    assert (await asker.ask(body)).text == "New."
    hold.set()
    assert (await before).text == "Old."
    assert (await asker.stored(body)).text == "New."


@pytest.mark.parametrize("what", CHANGES)
async def test_another_replica_asks_anew(upstream: FakeUpstream, start: Start, what: str) -> None:
    hold = asyncio.Event()
    upstream.on("harbour", Reply(json=chat_body("Old."), hold=hold), Reply(json=chat_body("New.")))
    body = chat("Who keeps the harbour?")
    services = [await start(), await start()]
    async with Asker(services[0].base) as one, Asker(services[1].base) as two:
        before = asyncio.create_task(one.ask(body))
        await reached(upstream, "harbour")
        await change(one, what)
        after = await two.ask(body)
        assert (after.text, after.cache) == ("New.", "MISS")
        hold.set()
        assert (await before).text == "Old."
        await noted(2, one, two)
        assert [(await each.ask(body)).text for each in (one, two)] == ["New."] * 2
