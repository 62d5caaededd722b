"""Expired answers that the policy still lets serve, while a fresh one is fetched once, or where none is to be had."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from asking import Answered, Asker, asked, chat
from running import in_company

from tests.fakes.upstream import FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODY = chat("What does the tide do?")
WINDOW = 600_000


def tide(upstream: FakeUpstream, hold: asyncio.Event | None = None) -> None:
    upstream.on("tide", Reply(json=chat_body("Rising.")), Reply(json=chat_body("Falling."), hold=hold))


def expire(database_url: str, seconds: int = 5) -> None:
    """Let every entry have expired so many seconds ago."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update semcache.entry set expires_at = now() - %s * interval '1 second'", (seconds,))


async def stored(asker: Asker) -> None:
    await asker.ask(BODY)
    async with asyncio.timeout(20):
        while (await asker.ask(BODY, cache_control="only-if-cached")).status != 200:
            pass


async def until_fresh(asker: Asker) -> Answered:
    async with asyncio.timeout(20):
        while (got := await asker.ask(BODY)).text != "Falling.":
            assert got.cache == "STALE"
    return got


async def test_an_expired_answer_is_given_at_once_and_renewed_once(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    hold = asyncio.Event()
    tide(upstream, hold)
    first, second = await start(l1_entries=0), await start(l1_entries=0)
    await in_company(first, second)
    async with Asker(first.base) as asker, Asker(second.base) as other:
        await asker.new_cache(staleWhileRevalidateMillis=WINDOW)
        other.cache = asker.cache
        await stored(asker)
        expire(database_url)
        got = await asyncio.gather(*(who.ask(BODY) for who in (asker, other) for _ in range(5)))
        assert {(one.text, one.cache, one.reason) for one in got} == {("Rising.", "STALE", "revalidating")}
        assert {one.headers["x-cache-ttl"] for one in got} == {"0"}
        assert (await asker.ask(BODY | {"stream": True})).text == "Rising."
        async with asyncio.timeout(20):
            while len(asked(upstream, "tide")) < 2:
                upstream.arrived.clear()
                await upstream.arrived.wait()
        hold.set()
        assert (await until_fresh(asker)).cache == "HIT"
        assert (await until_fresh(other)).cache == "HIT"
    assert len(asked(upstream, "tide")) == 2


async def test_a_living_answer_comes_before_a_newer_expired_one(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    tide(upstream)
    async with Asker((await start(l1_entries=0)).base) as asker:
        await asker.new_cache(staleWhileRevalidateMillis=WINDOW)
        await stored(asker)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(
                "insert into semcache.entry (tenant_id, cache_id, scope_id, output_id, epoch, exact_key, "
                "attributes_key, prompt, provenance, expires_at) select tenant_id, cache_id, scope_id, output_id, "
                "epoch, exact_key, sha256('other'), prompt, provenance, now() - interval '1 second' "
                "from semcache.entry"
            )
        assert (await asker.ask(BODY)).cache == "HIT"


@pytest.mark.parametrize(
    ("ago", "directive"),
    [
        (WINDOW // 1000 + 5, ""),
        (5, "stale-while-revalidate=0"),
        (5, "stale-while-revalidate=3"),
        (5, "min-fresh=0"),
    ],
)
async def test_after_the_window_and_where_the_caller_wants_less_the_model_is_asked(
    upstream: FakeUpstream, start: Start, database_url: str, ago: int, directive: str
) -> None:
    tide(upstream)
    async with Asker((await start(l1_entries=0)).base) as asker:
        await asker.new_cache(staleWhileRevalidateMillis=WINDOW)
        await stored(asker)
        expire(database_url, ago)
        got = await asker.ask(BODY, **({"cache_control": directive} if directive else {}))
        assert (got.text, got.cache) == ("Falling.", "MISS")


async def test_a_caller_cannot_want_more_than_the_policy_allows(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    tide(upstream)
    async with Asker((await start(l1_entries=0)).base) as asker:
        await asker.new_cache()
        await stored(asker)
        expire(database_url)
        got = await asker.ask(BODY, cache_control="stale-while-revalidate=3600, stale-if-error=3600")
        assert got.cache == "MISS"


async def test_a_caller_may_refuse_what_stands_in_for_an_error(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    upstream.on("tide", Reply(json=chat_body("Rising.")), Reply(status=503, json={"error": {"message": "busy"}}))
    async with Asker((await start(l1_entries=0)).base) as asker:
        await asker.new_cache(staleIfErrorMillis=WINDOW)
        await stored(asker)
        expire(database_url)
        assert (await asker.ask(BODY, cache_control="stale-if-error=3")).status == 503
        assert (await asker.ask(BODY, cache_control="min-fresh=0")).status == 503
        assert (await asker.ask(BODY, cache_control="stale-if-error=3600")).cache == "STALE"


async def test_what_was_called_stale_is_served_in_no_window(upstream: FakeUpstream, start: Start) -> None:
    tide(upstream)
    async with Asker((await start(l1_entries=0)).base) as asker:
        await asker.new_cache(staleWhileRevalidateMillis=WINDOW)
        await stored(asker)
        entry = (await asker.ask(BODY)).headers["x-cache-entry-id"]
        path = f"/v1/caches/{asker.cache}/feedback"
        sent = await asker.http.post(path, json={"entryId": entry, "verdict": "stale"}, headers=asker.headers())
        assert sent.status_code == 202
        assert (await asker.ask(BODY)).cache == "MISS"
