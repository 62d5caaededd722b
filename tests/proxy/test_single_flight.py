"""Equal requests at one time make one call to the model, in one process and among replicas."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from asking import STEADY, Answered, Asker, asked, attended, chat, reached, says
from processes import start as start_command
from running import Service, in_company

from service.cache import complete
from service.cache.asked import Asked
from service.cache.call import Call
from service.cache.runtime import Runtime
from tests.fakes.upstream import FakeUpstream, Reply, chat_body, chat_stream
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def flights(database_url: str) -> list[str]:
    """The names of the calls that replicas lead."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        cursor = await connection.execute("select name from semcache.lease where name like 'flight:%'")
        return [row[0] for row in await cursor.fetchall()]


async def waiting(database_url: str) -> list[str]:
    """The names of flights, once there are some."""
    async with asyncio.timeout(20):
        while not (names := await flights(database_url)):
            pass
    return names


async def test_many_equal_requests_make_one_call(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    hold = asyncio.Event()
    upstream.on("ropewalk", Reply(chunks=chat_stream("A long ", "shed.", usage=True), hold=hold))
    bodies = [chat("What is the ropewalk?", stream=bool(i % 2)) for i in range(40)]
    bodies[0]["stream"] = True
    tasks = [asyncio.create_task(asker.ask(bodies[0]))]
    await reached(upstream, "ropewalk")
    tasks += [asyncio.create_task(asker.ask(body)) for body in bodies[1:]]
    await attended(shared, len(bodies))
    hold.set()
    answers = await asyncio.gather(*tasks)
    assert {answer.text for answer in answers} == {"A long shed."}
    assert [a.streamed for a in answers] == [body["stream"] for body in bodies]
    assert len(asked(upstream, "ropewalk")) == 1
    assert (answers[0].cache, {a.cache for a in answers[1:]}) == ("MISS", {"COALESCED"})


async def test_a_fast_model_is_asked_once_by_requests_that_come_at_once(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "gasworks", *(f"Answer {i}." for i in range(64)))
    answers = await asyncio.gather(*(asker.ask(chat("Where is the gasworks?")) for _ in range(48)))
    assert {answer.text for answer in answers} == {"Answer 0."}
    assert len(asked(upstream, "gasworks")) == 1


async def test_a_call_that_ends_before_it_is_followed_is_not_made_again(
    upstream: FakeUpstream, asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, loop, prepare = asyncio.Event(), asyncio.get_running_loop(), complete.prepare

    async def late(runtime: Runtime, call: Call) -> Asked:
        prepared = await prepare(runtime, call)
        loop.call_soon_threadsafe(hold.set)
        while len(runtime.flights):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
        return prepared

    upstream.on("cooperage", Reply(json=chat_body("Barrels."), hold=hold), Reply(json=chat_body("Again.")))
    first = asyncio.create_task(asker.ask(chat("What does the cooperage make?")))
    await reached(upstream, "cooperage")
    monkeypatch.setattr(complete, "prepare", late)
    got = await asker.ask(chat("What does the cooperage make?"))
    assert [(got.text, got.cache), (await first).text] == [("Barrels.", "COALESCED"), "Barrels."]


async def test_a_tighter_requests_call_keeps_no_other_from_what_is_stored(upstream: FakeUpstream, asker: Asker) -> None:
    hold = asyncio.Event()
    upstream.on("cartwright", Reply(json=chat_body("Carts.")), Reply(json=chat_body("Wheels."), hold=hold))
    body = chat("What does a cartwright make?")
    await asker.stored(body)
    tighter = asyncio.create_task(asker.ask(body, cache_control="max-age=0"))
    await reached(upstream, "cartwright", 2)
    assert [(await asker.ask(body)).text, (await asker.ask(body, cache_control="only-if-cached")).text] == [
        "Carts."
    ] * 2
    hold.set()
    assert (await tighter).text == "Wheels."


async def test_only_if_cached_does_not_wait_for_the_model(upstream: FakeUpstream, asker: Asker) -> None:
    hold = asyncio.Event()
    upstream.on("wheelwright", Reply(json=chat_body("Wheels."), hold=hold))
    first = asyncio.create_task(asker.ask(chat("What does a wheelwright make?")))
    await reached(upstream, "wheelwright")
    assert (await asker.ask(chat("What does a wheelwright make?"), cache_control="only-if-cached")).status == 504
    hold.set()
    assert (await first).text == "Wheels."


async def test_the_same_words_in_other_spacing_follow_and_others_do_not(upstream: FakeUpstream, asker: Asker) -> None:
    hold = asyncio.Event()
    upstream.on("chandler", Reply(json=chat_body("Rope."), hold=hold))
    tasks = [asyncio.create_task(asker.ask(chat("What does a chandler  sell?")))]
    await reached(upstream, "chandler")
    tasks.append(asyncio.create_task(asker.ask(chat(" What does a chandler sell?"))))
    others = [
        chat("What does a chandler sell?", temperature=1),
        chat("What does a chandler  sell?", cache_salt="s"),
        chat("What does a Chandler sell, chandler?"),
    ]
    tasks += [asyncio.create_task(asker.ask(body)) for body in others]
    await reached(upstream, "chandler", 4)
    hold.set()
    assert [a.cache for a in await asyncio.gather(*tasks)] == ["MISS", "COALESCED", "MISS", "MISS", "MISS"]


async def test_stream_followers_get_the_bytes_as_they_come(upstream: FakeUpstream, asker: Asker) -> None:
    gate = asyncio.Event()
    chunks = chat_stream("Forty ", "seven.", usage=True)
    upstream.on("belfry", Reply(chunks=chunks, gates={2: gate}, headers={"set-cookie": "a=b", "x-kept": "yes"}))
    body = chat("How many bells in the belfry?", stream=True)
    async with asker.open(body) as leader:
        await anext(leader.aiter_bytes())
        async with asker.open(body) as follower:
            assert follower.headers["x-cache"] == "COALESCED"
            assert ("set-cookie" in leader.headers, "set-cookie" in follower.headers) == (True, False)
            assert follower.headers["x-kept"] == "yes"
            seen = await anext(follower.aiter_bytes())
            assert b"Forty" in seen or b"assistant" in seen
    gate.set()
    assert (await asker.stored(body)).text == "Forty seven."


async def test_a_leaders_error_is_not_shared(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    hold = asyncio.Event()
    upstream.on("brewery", Reply(status=503, json={"error": {}}, hold=hold), Reply(json=chat_body("Ale.")))
    tasks = [asyncio.create_task(asker.ask(chat("What does the brewery make?")))]
    await reached(upstream, "brewery")
    tasks += [asyncio.create_task(asker.ask(chat("What does the brewery make?"))) for _ in range(6)]
    await attended(shared, len(tasks))
    hold.set()
    leader, *followers = await asyncio.gather(*tasks)
    assert (leader.status, {f.status for f in followers}, {f.text for f in followers}) == (503, {200}, {"Ale."})


async def test_followers_of_a_failed_leader_ask_at_once(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    first, others = asyncio.Event(), asyncio.Event()
    failed = [Reply(status=503, json={"error": {}}, hold=hold) for hold in (first, others)]
    upstream.on("maltings", *failed)
    tasks = [asyncio.create_task(asker.ask(chat("What do the maltings make?")))]
    await reached(upstream, "maltings")
    tasks += [asyncio.create_task(asker.ask(chat("What do the maltings make?"))) for _ in range(4)]
    await attended(shared, len(tasks))
    first.set()
    await reached(upstream, "maltings", 5)
    others.set()
    assert {got.status for got in await asyncio.gather(*tasks)} == {503}


async def test_a_stream_that_breaks_before_its_first_byte_is_asked_for_again_by_its_followers(
    upstream: FakeUpstream, asker: Asker, shared: Service
) -> None:
    gate = asyncio.Event()
    broken = Reply(chunks=chat_stream("Never."), gates={0: gate}, cut_after=0)
    upstream.on("stables", broken, Reply(chunks=chat_stream("Hay.", usage=True)))
    body = chat("What is in the stables?", stream=True)
    async with asker.open(body) as leader:
        tasks = [asyncio.create_task(asker.ask(body)) for _ in range(3)]
        await attended(shared, 1 + len(tasks))
        gate.set()
        assert [(got.status, got.text) for got in await asyncio.gather(*tasks)] == [(200, "Hay.")] * 3
        with pytest.raises(httpx.RemoteProtocolError):
            await leader.aread()


async def test_followers_get_a_break_in_mid_stream_as_the_model_server_gave_it(
    upstream: FakeUpstream, asker: Asker
) -> None:
    gate = asyncio.Event()
    upstream.on("forge", Reply(chunks=chat_stream("Some ", "iron."), gates={2: gate}, cut_after=2))
    body = chat("What is in the forge?", stream=True)
    async with asker.open(body) as leader, asker.open(body) as follower:
        assert follower.headers["x-cache"] == "COALESCED"
        gate.set()
        for broken in (leader, follower):
            with pytest.raises(httpx.RemoteProtocolError):
                await broken.aread()
    assert len(asked(upstream, "forge")) == 1


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "body"])
async def test_an_answer_that_was_cut_short_is_for_those_who_asked_while_it_came(
    upstream: FakeUpstream, asker: Asker, stream: bool
) -> None:
    cut = Reply(chunks=chat_stream("Ser", finish="length")) if stream else Reply(json=chat_body("Ser", finish="length"))
    upstream.on("sailmaker", cut)
    body = chat("What does the sailmaker sew?", stream=stream)
    assert [(await asker.ask(body)).cache for _ in range(4)] == ["MISS"] * 4
    assert len(asked(upstream, "sailmaker")) == 4


async def test_no_store_and_no_cache_ask_for_themselves(upstream: FakeUpstream, asker: Asker) -> None:
    hold = asyncio.Event()
    upstream.on("tannery", Reply(json=chat_body("Leather."), hold=hold))
    body = chat("What does the tannery make?")
    tasks = [asyncio.create_task(asker.ask(body))]
    await reached(upstream, "tannery")
    tasks += [asyncio.create_task(asker.ask(body, cache_control=value)) for value in ("no-store", "no-cache")]
    await reached(upstream, "tannery", 3)
    hold.set()
    assert [a.cache for a in await asyncio.gather(*tasks)] == ["MISS", "MISS", "REFRESH"]


@asynccontextmanager
async def replicas(start: Start, **settings: Any) -> AsyncIterator[tuple[Asker, Asker]]:
    services = [await start(**settings), await start(**settings)]
    await in_company(*services)
    async with Asker(services[0].base) as one, Asker(services[1].base) as two:
        yield one, two


async def test_replicas_make_one_call(upstream: FakeUpstream, start: Start, database_url: str) -> None:
    hold = asyncio.Event()
    upstream.on("granary", Reply(chunks=chat_stream("Grain.", usage=True), hold=hold))
    body = chat("What is in the granary?")
    services = [await start() for _ in range(2)]
    await in_company(*services)
    async with Asker(services[0].base) as one, Asker(services[1].base) as two:
        first = asyncio.create_task(one.ask(body | {"stream": True}))
        await reached(upstream, "granary")
        others = [asyncio.create_task(two.ask(body)) for _ in range(5)]
        await attended(services[1], len(others))
        assert len(await flights(database_url)) == 1
        hold.set()
        got = [await first, *await asyncio.gather(*others)]
        assert [a.text for a in got] == ["Grain."] * 6
        assert [a.cache for a in got] == ["MISS"] + ["COALESCED"] * 5
        assert len(asked(upstream, "granary")) == 1
        async with asyncio.timeout(20):
            while await flights(database_url):
                pass


async def test_replicas_that_waited_for_nothing_ask_at_once(upstream: FakeUpstream, start: Start) -> None:
    first, others = asyncio.Event(), asyncio.Event()
    cut = [Reply(json=chat_body("Sai", finish="length"), hold=hold) for hold in (first, others)]
    upstream.on("sail loft", *cut)
    services = [await start(flight_lease=60.0) for _ in range(3)]
    await in_company(*services)
    async with Asker(services[0].base) as one, Asker(services[1].base) as two, Asker(services[2].base) as three:
        tasks = [asyncio.create_task(one.ask(chat("What is in the sail loft?")))]
        await reached(upstream, "sail loft")
        tasks += [asyncio.create_task(asker.ask(chat("What is in the sail loft?"))) for asker in (two, three)]
        async with asyncio.timeout(20):
            while not all(s.runtime.leadership._news for s in services[1:]):  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
        first.set()
        await reached(upstream, "sail loft", 3)
        others.set()
        assert [got.text for got in await asyncio.gather(*tasks)] == ["Sai"] * 3


async def test_a_stream_is_not_silent_for_as_long_as_another_replica_asks(upstream: FakeUpstream, start: Start) -> None:
    hold = asyncio.Event()
    upstream.on("windlass", Reply(json=chat_body("Up."), hold=hold), Reply(chunks=chat_stream("Down.", usage=True)))
    services = [await start(stream_silence=0.2) for _ in range(2)]
    await in_company(*services)
    async with Asker(services[0].base) as one, Asker(services[1].base) as two:
        first = asyncio.create_task(one.ask(chat("Where does the windlass go?")))
        await reached(upstream, "windlass")
        got = await two.ask(chat("Where does the windlass go?") | {"stream": True})
        assert (got.text, got.cache) == ("Down.", "MISS")
        assert not first.done()
        hold.set()
        assert (await first).text == "Up."


async def test_a_replica_asks_nobody_while_it_is_alone(upstream: FakeUpstream, start: Start, database_url: str) -> None:
    hold = asyncio.Event()
    for word in ("weir", "sluice"):
        upstream.on(word, Reply(json=chat_body("Water."), hold=hold))
    first = await start()
    async with Asker(first.base) as asker:
        await asker.ask(chat("warm up"))
        assert first.runtime.coherence.alone
        tasks = [asyncio.create_task(asker.ask(chat("Where is the weir?")))]
        await reached(upstream, "weir")
        assert await flights(database_url) == []
        await in_company(first, await start())
        tasks.append(asyncio.create_task(asker.ask(chat("Where is the sluice?"))))
        await reached(upstream, "sluice")
        assert len(await flights(database_url)) == 1
        hold.set()
        assert [got.text for got in await asyncio.gather(*tasks)] == ["Water.", "Water."]


async def test_a_new_replica_makes_itself_known_before_the_next_renewal(upstream: FakeUpstream, start: Start) -> None:
    first = await start(lease_duration=60.0)  # which is renewed each 20 s
    async with Asker(first.base) as asker:
        await asker.ask(chat("warm up"))
    assert first.runtime.coherence.alone
    await start(lease_duration=60.0)
    async with asyncio.timeout(10):
        await in_company(first)


async def test_replicas_that_ask_at_once_make_one_call(upstream: FakeUpstream, start: Start) -> None:
    says(upstream, "foundry", *(f"Answer {i}." for i in range(40)))
    async with replicas(start) as (one, two):
        for _ in range(3):  # so that neither has to look at its model or open its embedder first
            await asyncio.gather(one.ask(chat("warm up")), two.ask(chat("warm up")))
        answers = await asyncio.gather(*((one, two)[i % 2].ask(chat("Where is the foundry?")) for i in range(20)))
    assert {answer.text for answer in answers} == {"Answer 0."}
    assert len(asked(upstream, "foundry")) == 1


async def test_a_replica_takes_over_when_the_lead_runs_out(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    hold = asyncio.Event()
    upstream.on("quarry", Reply(json=chat_body("Stone."), hold=hold), Reply(json=chat_body("Slate.")))
    async with replicas(start) as (asker, _):
        body = chat("What is in the quarry?")
        first = asyncio.create_task(asker.ask(body))
        await reached(upstream, "quarry")
        (name,) = await waiting(database_url)
        hold.set()
        await first
        stored = await asker.stored(body)
        await asker.http.delete(f"/v1/caches/default/entries/{stored.headers['x-cache-entry-id']}")
        # another replica took the lead, and died
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await connection.execute(
                "insert into semcache.lease (name, holder, expires_at)"
                " values (%s, gen_random_uuid(), clock_timestamp() + interval '700 ms')",
                (name,),
            )
            got = await asker.ask(body)
            cursor = await connection.execute(
                "select count(*) from semcache.lease where name = %s and expires_at > clock_timestamp()", (name,)
            )
            assert await cursor.fetchone() <= (1,)
    assert (got.text, got.cache) == ("Slate.", "MISS")


async def test_a_killed_leader_hands_over(
    upstream: FakeUpstream, start: Start, database_url: str, tmp_path: Path
) -> None:
    upstream.on("smithy", Reply(json=chat_body("Never."), hold=asyncio.Event()), Reply(json=chat_body("Iron.")))
    service = await start(flight_lease=1.0)
    async with Asker(service.base) as two:
        variables = {"SEMCACHE_FLIGHT_LEASE": "1", "SEMCACHE_LEASE_DURATION": str(STEADY), "HOME": os.environ["HOME"]}
        where = ["--port", "0", "--upstream", upstream.url, "--database-url", database_url]
        with start_command("pgsemcache", "serve", *where, **variables) as process:
            assert process.stdout is not None
            line = await asyncio.to_thread(process.stdout.readline)
            await in_company(service)
            async with Asker(line.split()[3]) as one:
                lost = asyncio.create_task(one.ask(chat("What is in the smithy?")))
                await reached(upstream, "smithy")
                follower = asyncio.create_task(two.ask(chat("What is in the smithy?")))
                await waiting(database_url)
                process.send_signal(signal.SIGKILL)
                got: Answered = await follower
                assert isinstance((await asyncio.gather(lost, return_exceptions=True))[0], Exception)
            process.communicate()
    assert (got.text, got.cache, len(asked(upstream, "smithy"))) == ("Iron.", "MISS", 2)
