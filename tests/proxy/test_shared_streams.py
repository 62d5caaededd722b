"""A stream that another replica asks for, too, is shown to it as it comes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio
from asking import CHAT, STEADY, Asker, asked, attended, chat, reached
from conftest import NewDatabase
from processes import start as start_command
from running import Service, in_company, running_service

from service.cache import leadership
from service.json_text import dump
from service.settings import Settings
from service.store.notifications import FLIGHT
from tests.fakes.relay import Relay
from tests.fakes.upstream import FakeUpstream, Reply, chat_body, chat_stream, lines
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "small-chat", "metadata": {}}
OUTPUT = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}


def said(text: str, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "small-chat", "choices": [choice]}


def response_events(text: str) -> list[bytes]:
    """The first and the last event of a streamed response."""
    part = {"type": "output_text", "text": text, "annotations": []}
    states = {
        "created": RESPONSE | {"status": "in_progress", "output": []},
        "completed": RESPONSE | {"status": "completed", "output": [OUTPUT | {"content": [part]}]},
    }
    return [
        b"event: response.%s\ndata: %s\n\n" % (name.encode(), dump({"type": f"response.{name}", "response": response}))
        for name, response in states.items()
    ]


FORMS = {
    "chat": (CHAT, chat("What is in the hayloft?"), chat_stream("Hay.", usage=True)),
    "completions": (
        "/v1/completions",
        {"model": "small-chat", "temperature": 0, "prompt": "In the hayloft is"},
        lines(said("Ha"), said("y."), said("", "stop")),
    ),
    "responses": (
        "/v1/responses",
        {"model": "small-chat", "temperature": 0, "input": "What is in the hayloft?"},
        response_events("Hay."),
    ),
}


class Pair:
    """Two replicas on one database, and a client for each."""

    def __init__(self, url: str, services: list[Service], one: Asker, two: Asker) -> None:
        self.url, self.services, self.one, self.two = url, services, one, two

    async def shown(self, text: bytes) -> int:
        """How many pieces with this text are shown."""
        async with await psycopg.AsyncConnection.connect(self.url) as connection:
            query = "select count(*) from semcache.flight_chunk where position(%s in piece) > 0"
            row = await (await connection.execute(query, (text,))).fetchone()
        assert row is not None
        return int(row[0])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(upstream: FakeUpstream, new_database: NewDatabase) -> AsyncIterator[Pair]:
    """Two replicas that all tests of this module share."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(new_database())
        services = []
        for _ in range(2):
            settings = Settings(database_url=url, upstream=upstream.url, lease_duration=STEADY)
            context = running_service(settings)
            services.append(await asyncio.to_thread(context.__enter__))
            stack.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
        await in_company(*services)
        one, two = [await stack.enter_async_context(Asker(service.base)) for service in services]
        for asker in (one, two, one, two):  # so that no later look at the model changes what is asked
            await asker.ask(chat("warm up"))
        yield Pair(url, services, one, two)


async def followed(leader: Service, follower: Service) -> str:
    """The name of the call that one replica makes, once the other waits for it."""
    ours, theirs = leader.runtime.leadership._held, follower.runtime.leadership._news
    async with asyncio.timeout(20):
        while not (names := [name for name in list(ours) if theirs.get(name)]):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
    return names[0]


async def begun(follower: Service) -> None:
    """Return when a stream of another replica has begun to come."""
    calls = follower.runtime.flights._flights
    async with asyncio.timeout(20):
        while not any(flight.head.so_far for flight in list(calls.values())):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("form", FORMS)
async def test_followers_on_another_replica_get_the_bytes_as_they_come(
    upstream: FakeUpstream, pair: Pair, form: str
) -> None:
    path, body, chunks = FORMS[form]
    gate = asyncio.Event()
    headers = {"set-cookie": "a=b", "x-kept": "yes"}
    upstream.on("hayloft", Reply(chunks=chunks, gates={1: gate}, headers=headers))
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(asker.open(body | {"stream": True}, path=path))
            for asker in (pair.one, pair.two, pair.two, pair.one)
        ]
        readers = [response.aiter_bytes() for response in opened]
        begun = [await anext(reader) for reader in readers]
        assert begun == [chunks[0]] * 4
        assert [r.headers["x-cache"] for r in opened] == ["MISS"] + ["COALESCED"] * 3
        assert [(r.headers.get("set-cookie"), r.headers["x-kept"]) for r in opened[:2]] == [
            ("a=b", "yes"),
            (None, "yes"),
        ]
        gate.set()
        wholes = [b"".join([chunk async for chunk in reader]) for reader in readers]
    assert wholes[0]
    assert wholes == [wholes[0]] * 4
    assert len(asked(upstream, "hayloft")) == 1
    assert (await pair.two.stored(body, path=path)).status == 200


async def test_nothing_is_shown_while_nobody_else_asks(upstream: FakeUpstream, pair: Pair) -> None:
    gate = asyncio.Event()
    upstream.on("dovecote", Reply(chunks=chat_stream("Doves."), gates={2: gate}))
    body = chat("What is in the dovecote?", stream=True)
    async with pair.one.open(body) as leader, pair.one.open(body) as follower:
        await anext(leader.aiter_bytes())
        assert follower.headers["x-cache"] == "COALESCED"
        assert await pair.shown(b"Doves.") == 0
        gate.set()
    assert (await pair.one.stored(body)).text == "Doves."
    assert await pair.shown(b"Doves.") == 0


@pytest.mark.parametrize("how", ["an error", "no byte"])
async def test_a_stream_that_fails_before_its_first_byte_is_not_shown(
    upstream: FakeUpstream, pair: Pair, how: str
) -> None:
    hold = asyncio.Event()
    error = Reply(status=503, json={"error": {}}, hold=hold)
    cut = Reply(chunks=chat_stream("Never."), gates={0: hold}, cut_after=0)
    text = f"What is in the pantry with {how}?"
    upstream.on(text, error if how == "an error" else cut, Reply(chunks=chat_stream("Jam.", usage=True)))
    leader = asyncio.create_task(pair.one.ask(chat(text, stream=True)))
    await reached(upstream, text)
    follower = asyncio.create_task(pair.two.ask(chat(text, stream=True)))
    await attended(pair.services[1], 1)
    hold.set()
    assert ((await follower).text, (await follower).cache) == ("Jam.", "MISS")
    failed = (await asyncio.gather(leader, return_exceptions=True))[0]
    assert isinstance(failed, httpx.RemoteProtocolError) if how == "no byte" else failed.status == 503


async def test_a_break_in_mid_stream_is_shown_as_one_and_what_was_shown_is_deleted(
    upstream: FakeUpstream, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leadership, "KEPT", 0.0)
    gate = asyncio.Event()
    upstream.on("stillroom", Reply(chunks=chat_stream("Some ", "gin."), gates={2: gate}, cut_after=2))
    body = chat("What is in the stillroom?", stream=True)
    async with pair.one.open(body) as leader, pair.two.open(body) as follower:
        assert follower.headers["x-cache"] == "COALESCED"
        assert await pair.shown(b"Some ") == 1
        gate.set()
        for broken in (leader, follower):
            with pytest.raises(httpx.RemoteProtocolError):
                await broken.aread()
    assert len(asked(upstream, "stillroom")) == 1
    async with asyncio.timeout(20):
        while await pair.shown(b"Some "):
            pass


async def test_an_answer_cut_short_is_for_those_on_other_replicas_too_who_asked_while_it_came(
    upstream: FakeUpstream, pair: Pair
) -> None:
    gate = asyncio.Event()
    upstream.on("laundry", Reply(chunks=chat_stream("Lin", finish="length", usage=True), gates={2: gate}))
    body = chat("What is in the laundry?", stream=True)
    async with pair.one.open(body), pair.two.open(body) as follower:
        gate.set()
        assert b'"length"' in await follower.aread()
    assert len(asked(upstream, "laundry")) == 1
    assert (await pair.two.ask(body)).cache == "MISS"


async def test_a_stream_of_another_form_waits_for_the_stored_answer(upstream: FakeUpstream, pair: Pair) -> None:
    gate = asyncio.Event()
    upstream.on("scullery", Reply(chunks=response_events("Pans."), gates={1: gate}))
    body = {"model": "small-chat", "temperature": 0, "input": "What is in the scullery?", "stream": True}
    async with pair.one.open(body | {"metadata": {"of": "one"}}, path="/v1/responses"):
        other = asyncio.create_task(pair.two.ask(body | {"metadata": {"of": "two"}}, path="/v1/responses"))
        await followed(*pair.services)
        gate.set()
        got = await other
    assert (got.cache, got.reason) == ("COALESCED", "landed")
    assert b'"metadata":{"of":"two"}' in got.raw
    assert len(asked(upstream, "scullery")) == 1


async def test_others_on_the_replica_of_a_follower_wait_for_the_answer_in_their_form(
    upstream: FakeUpstream, pair: Pair
) -> None:
    gate = asyncio.Event()
    upstream.on("cellar", Reply(chunks=response_events("Ale."), gates={1: gate}))
    body = {"model": "small-chat", "temperature": 0, "input": "What is in the cellar?"}
    forms = [{"stream": True, "metadata": {"of": "two"}}, {"metadata": {"of": "two"}}]
    async with (
        pair.one.open(body | {"stream": True}, path="/v1/responses"),
        pair.two.open(body | {"stream": True}, path="/v1/responses"),
    ):
        tasks = [asyncio.create_task(pair.two.ask(body | form, path="/v1/responses")) for form in forms]
        await attended(pair.services[1], 1 + len(tasks))
        gate.set()
        others = await asyncio.gather(*tasks)
    assert [(got.cache, b'"metadata":{"of":"two"}' in got.raw) for got in others] == [("COALESCED", True)] * 2
    assert len(asked(upstream, "cellar")) == 1


async def test_who_follows_an_answer_that_is_too_large_gets_all_of_it_though_only_the_last_of_it_is_kept(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    gates = {number: asyncio.Event() for number in (2, 12, 20)}
    chunks = chat_stream(*(f"word {number} " * 50 for number in range(20)), usage=True)
    upstream.on("library", Reply(chunks=chunks, gates=gates))
    services = [await start(max_answer_bytes=8192) for _ in range(2)]
    await in_company(*services)
    body = chat("What is in the library?", stream=True)
    async with (
        Asker(services[0].base) as one,
        Asker(services[1].base) as two,
        one.open(body) as leader,
        two.open(body) as follower,
    ):
        assert follower.headers["x-cache"] == "COALESCED"
        rest = asyncio.create_task(leader.aread())
        reader, got = follower.aiter_bytes(), b""
        for number, gate in gates.items():
            while len(got) < sum(map(len, chunks[:number])):
                got += await anext(reader)
            gate.set()
        got += b"".join([chunk async for chunk in reader])
        assert got == await rest
    assert len(asked(upstream, "library")) == 1
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        row = await (await connection.execute("select min(starts_at) from semcache.flight_chunk")).fetchone()
    assert row is not None
    assert row[0] > 0


@pytest.mark.parametrize("mid_stream", [True, False], ids=["in mid-stream", "before the first byte"])
async def test_a_follower_that_loses_the_database(
    upstream: FakeUpstream, start: Start, database_url: str, mid_stream: bool
) -> None:
    gate = asyncio.Event()
    chunks = chat_stream("Lances.", usage=True)
    upstream.on("tiltyard", Reply(chunks=chunks, gates={2 if mid_stream else 0: gate}), Reply(chunks=chunks))
    body = chat("What is in the tiltyard?", stream=True)
    async with Relay(database_url) as relay:
        services = [await start(), await start(database_url=relay.url)]
        await in_company(*services)
        async with Asker(services[0].base) as one, Asker(services[1].base) as two:
            await two.ask(chat("warm up"))
            leader = asyncio.create_task(one.ask(body))
            await reached(upstream, "tiltyard")
            follower = asyncio.create_task(two.ask(body))
            await followed(*services)
            if mid_stream:
                await begun(services[1])
            relay.down()
            got = (await asyncio.gather(follower, return_exceptions=True))[0]
            gate.set()
            assert (await leader).text == "Lances."
    if mid_stream:
        assert isinstance(got, httpx.RemoteProtocolError)
    else:
        assert (got.text, got.cache) == ("Lances.", "MISS")
    assert len(asked(upstream, "tiltyard")) == (1 if mid_stream else 2)


async def test_a_leader_that_is_killed_in_mid_stream_breaks_it(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    upstream.on("mews", Reply(chunks=chat_stream("Hawks ", "fly."), gates={2: asyncio.Event()}))
    service = await start(flight_lease=1.0)
    body = chat("What is in the mews?", stream=True)
    where = ["--port", "0", "--upstream", upstream.url, "--database-url", database_url]
    variables = {"SEMCACHE_FLIGHT_LEASE": "1", "SEMCACHE_LEASE_DURATION": str(STEADY), "HOME": os.environ["HOME"]}
    with start_command("pgsemcache", "serve", *where, **variables) as process:
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        await in_company(service)
        async with (
            Asker(line.split()[3]) as one,
            Asker(service.base) as two,
            one.open(body) as leader,
            two.open(body) as follower,
        ):
            assert follower.headers["x-cache"] == "COALESCED"
            reader = follower.aiter_bytes()
            assert b"assistant" in await anext(reader)
            process.send_signal(signal.SIGKILL)
            for broken in (leader.aread(), anext(reader)):
                with pytest.raises(httpx.RemoteProtocolError):
                    await broken
        process.communicate()
    assert len(asked(upstream, "mews")) == 1


async def test_who_waits_looks_again_when_its_replica_begins_to_listen_anew(upstream: FakeUpstream, pair: Pair) -> None:
    hold = asyncio.Event()
    upstream.on("barbican", Reply(json=chat_body("Guards."), hold=hold))
    first = asyncio.create_task(pair.one.ask(chat("Who is in the barbican?")))
    await reached(upstream, "barbican")
    other = asyncio.create_task(pair.two.ask(chat("Who is in the barbican?")))
    name, leads = await followed(*pair.services), pair.services[1].runtime.leadership
    before = leads._news.get(name)
    assert leads._task is not None
    leads._task.get_loop().call_soon_threadsafe(leads.heard, FLIGHT, "")
    async with asyncio.timeout(20):
        while leads._news.get(name) in (None, before):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
    hold.set()
    assert [got.text for got in await asyncio.gather(first, other)] == ["Guards."] * 2
    assert len(asked(upstream, "barbican")) == 1
