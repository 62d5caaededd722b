"""No request fails because of the cache: without a database, without an embedder, without a moment to lose."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from asking import Asker, asked, chat, says
from running import in_company

from service.cache.patience import WINDOW
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.store.database import Database, Limits
from service.store.tenants import create_key, ensure, revoke_key
from tests.fakes.relay import Relay
from tests.fakes.upstream import FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

BRIEF: dict[str, Any] = {"lease_duration": 1.0, "database_timeout": 2.0}  # so that what is lost is missed soon


@pytest_asyncio.fixture(loop_scope="module")
async def wire(database_url: str) -> AsyncIterator[Relay]:
    async with Relay(database_url) as running:
        yield running


async def keys(database_url: str) -> tuple[str, int]:
    """A key of the tenant north, and its number."""
    db = Database(database_url, Limits(pool_min=1, pool_max=1))
    await db.open()
    try:
        number, _ = await create_key(db, await ensure(db, "north"), "sk-north-1")
    finally:
        await db.close()
    return "sk-north-1", number


async def no_hits(asker: Asker, body: Any) -> None:
    """What is remembered is served no longer than the replica's lease: then nobody could say that it is stale."""
    async with asyncio.timeout(10):
        while (got := await asker.ask(body)).cache == "HIT":
            pass
    assert (got.status, got.cache) == (200, "ERROR")


@pytest.mark.parametrize("failure", ["down", "hang"])
async def test_without_a_database_the_model_answers_quickly_and_hits_come_back(
    upstream: FakeUpstream, start: Start, wire: Relay, failure: str
) -> None:
    says(upstream, "gate", "It opens.")
    async with Asker((await start(database_url=wire.url, lookup_deadline=0.05, **BRIEF)).base) as asker:
        await asker.ask(chat("warm the gate"))
        await asker.stored(chat("warm the gate"))
        getattr(wire, failure)()
        times = []
        for number in range(8):
            begun = time.perf_counter()
            got = await asker.ask(chat(f"What is gate {number} for?"))
            times.append(time.perf_counter() - begun)
            assert (got.status, got.text) == (200, "It opens.")
        assert (got.cache, got.reason) == ("ERROR", "database_unavailable")
        assert times[-1] < 1
        await no_hits(asker, chat("warm the gate"))
        search = await asker.http.post("/v1/caches/default/entries/search", json={"prompt": "gate?"})
        assert (search.status_code, search.headers["content-type"]) == (503, "application/problem+json")
        metrics = (await asker.http.get("/metrics")).text
        assert 'semcache_lookups_total{outcome="error",reason="database_unavailable"}' in metrics
        wire.up()
        async with asyncio.timeout(20):
            while (await asker.ask(chat("What is the last gate for?"))).cache != "HIT":
                pass


async def test_a_slow_lookup_is_not_waited_for(upstream: FakeUpstream, start: Start, wire: Relay) -> None:
    says(upstream, "ferry", "At noon.")
    await start()
    service = await start(database_url=wire.url, lookup_deadline=0.05, database_timeout=2.5, breaker_failures=1000)
    await in_company(service)  # so that there is a lead to ask for
    patience = service.runtime.patience["chat"]
    async with Asker(service.base) as asker:
        await asker.stored(chat("When does the first ferry leave?"))
        for _ in range(WINDOW):
            patience.took(1.0)
        wire.hang()
        begun = time.perf_counter()
        got = await asker.ask(chat("When does the last ferry leave?"))
        took = time.perf_counter() - begun
        wire.up()
    assert (got.text, got.cache, got.reason) == ("At noon.", "ERROR", "deadline")
    assert took < 2 * patience.seconds  # the database is not waited for as long again because of the lead


async def test_who_was_checked_may_ask_the_model_without_a_database_and_nobody_else(
    upstream: FakeUpstream, start: Start, wire: Relay, database_url: str
) -> None:
    says(upstream, "lock", "It fills.")
    key, number = await keys(database_url)
    service = await start(database_url=wire.url, key_grace=600, **BRIEF)
    async with Asker(service.base, key=key) as asker, Asker(service.base, key="sk-nobody") as stranger:
        await asker.stored(chat("How does a lock work?"))
        assert (await stranger.ask(chat("How does a lock work?", model="made-up"))).status == 401
        assert not asked(upstream, "made-up")  # nor was its model looked at
        wire.down()
        db = Database(database_url, Limits(pool_min=1, pool_max=1))
        await db.open()
        await revoke_key(db, number)  # unseen: the wire is cut
        await db.close()
        before = len(asked(upstream, "How does a lock work?"))
        await no_hits(asker, chat("How does a lock work?"))
        assert len(asked(upstream, "How does a lock work?")) == before + 1
        models = await asker.http.get("/v1/models", headers=asker.headers())
        assert models.status_code == 404  # the model server's own answer
        refused = await stranger.ask(chat("How does a lock work?"))
        assert (refused.status, refused.json["error"]["code"]) == (503, "database_unavailable")
        assert len(asked(upstream, "How does a lock work?")) == before + 1
        wire.up()
        async with asyncio.timeout(20):
            while (await asker.ask(chat("How does a lock work?"))).status != 401:
                pass


async def test_a_key_is_remembered_only_for_so_long(
    upstream: FakeUpstream, start: Start, wire: Relay, database_url: str
) -> None:
    says(upstream, "weir", "It holds.")
    key, _ = await keys(database_url)
    async with Asker((await start(database_url=wire.url, key_grace=0, **BRIEF)).base, key=key) as asker:
        await asker.ask(chat("What does a weir do?"))
        wire.down()
        async with asyncio.timeout(20):
            while (got := await asker.ask(chat("What does a weir do?"))).status == 200:
                pass  # until the lease of the replica has run out
    assert (got.status, got.headers["x-cache"]) == (503, "ERROR")


async def test_without_an_embedder_the_model_answers_and_exact_hits_go_on(upstream: FakeUpstream, start: Start) -> None:
    service = await start()
    async with Asker(service.base) as asker:
        says(upstream, "clock", "The keeper.")
        await asker.stored(chat("Who winds the clock?"))
        _break(service.runtime)
        assert (await asker.stored(chat("Who winds the clock?"))).text == "The keeper."
        got = await asker.ask(chat("Who mends the clock?"))
        assert (got.status, got.text, got.cache, got.reason) == (200, "The keeper.", "ERROR", "embedder_unavailable")
        assert (await asker.stored(chat("Who mends the clock?"))).cache == "HIT"


async def test_a_fault_of_ours_is_nobody_elses(
    upstream: FakeUpstream, start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(upstream, "crane", "Upwards.")

    async def fault(*_: Any) -> None:
        raise ZeroDivisionError

    async with Asker((await start()).base) as asker:
        await asker.ask(chat("warm the crane"))
        monkeypatch.setattr("service.cache.front.look_up", fault)
        got = await asker.ask(chat("Which way does the crane go?"))
    assert (got.status, got.text, got.cache, got.reason) == (200, "Upwards.", "ERROR", "internal")
    assert "a lookup failed" in caplog.text


async def test_only_if_cached_says_so_when_nothing_can_be_looked_up(
    upstream: FakeUpstream, start: Start, wire: Relay
) -> None:
    says(upstream, "mole", "Stone.")
    async with Asker((await start(database_url=wire.url, **BRIEF)).base) as asker:
        await asker.stored(chat("What is a mole?"))
        wire.down()
        got = await asker.ask(chat("Is there a mole?"), cache_control="only-if-cached")
    assert (got.status, got.json["error"]["code"], got.cache) == (504, "not_cached", "ERROR")
    assert not asked(upstream, "Is there a mole?")


async def test_a_dead_or_slow_model_server_is_told_in_openais_words(start: Start) -> None:
    async with FakeUpstream() as dead, Asker((await start(upstream="http://127.0.0.1:9/v1")).base) as asker:
        got = await asker.ask(chat("Is anyone there?"), x_cache_mode="off")
        assert (got.status, got.json["error"]["code"]) == (502, "upstream_unreachable")
        assert set(got.json["error"]) == {"message", "type", "param", "code"}
        dead.on("slow", Reply(json=chat_body("late"), hold=asyncio.Event()))
        async with Asker((await start(upstream=dead.url, upstream_first_byte_timeout=0.3)).base) as patient:
            late = await patient.ask(chat("Are you slow?"))
    assert (late.status, late.json["error"]["code"], late.json["error"]["type"]) == (
        504,
        "upstream_timeout",
        "server_error",
    )


async def test_an_expired_answer_stands_in_where_the_policy_lets_it(upstream: FakeUpstream, start: Start) -> None:
    down = Reply(status=503, json={"error": {"message": "busy"}})
    upstream.on("tide", Reply(json=chat_body("Rising.")), down)
    body = chat("What does the tide do?")
    async with Asker((await start()).base) as asker:
        await asker.new_cache(staleIfErrorMillis=60_000)
        await asker.ask(body, x_cache_ttl="0.4")
        async with asyncio.timeout(10):
            while (await asker.ask(body, cache_control="only-if-cached")).status == 504:
                pass
            while (got := await asker.ask(body)).cache == "HIT":
                pass
        assert (got.status, got.text, got.cache, got.reason) == (200, "Rising.", "STALE", "upstream_failed")
        assert (await asker.ask(body | {"stream": True})).text == "Rising."
        assert (await asker.ask(body, cache_control="no-cache")).status == 503
        await asker.new_cache()
        assert (await asker.ask(body)).status == 503


async def test_requests_survive_the_database_being_killed_in_their_midst(
    upstream: FakeUpstream, start: Start, wire: Relay
) -> None:
    says(upstream, "pier", "Six.")
    async with Asker((await start(database_url=wire.url, **BRIEF)).base) as asker:
        limits = httpx.Limits(max_connections=32)
        asker.http = httpx.AsyncClient(base_url=asker.base, timeout=30, limits=limits)

        async def client(number: int) -> list[tuple[int, str | None]]:
            found = []
            for turn in range(12):
                got = await asker.ask(chat(f"Which pier, {(number * turn) % 20}?", stream=bool(turn % 2)))
                found.append((got.status, got.text))
                if number == 0 and turn in (3, 7):
                    wire.down()
                    wire.up()
            return found

        answers = await asyncio.gather(*(client(number) for number in range(16)))
    assert {answer for found in answers for answer in found} == {(200, "Six.")}


def _break(runtime: Runtime) -> None:
    async def embed(_: str) -> None:
        raise SemcacheError(Code.EMBEDDER_UNAVAILABLE, "broken by the test")

    runtime.embedder.embed = embed  # type: ignore[method-assign,assignment] # broken at this point only
