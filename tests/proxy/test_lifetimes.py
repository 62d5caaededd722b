"""Lifetimes that adapt: longer for answers that the model gives again, shorter for others, within bounds."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from asking import Asker, chat

from tests.fakes.upstream import FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODY = chat("When does the ferry leave?")
POLICY = {"adaptiveTtl": "recheck", "ttlMillis": 600_000, "minTtlMillis": 400_000, "maxTtlMillis": 2_000_000}


def says(upstream: FakeUpstream, *texts: str) -> None:
    upstream.on("ferry", *(Reply(json=chat_body(text)) for text in texts))


def grow_old(database_url: str) -> None:
    """Let every entry have come to its end five seconds ago, after the lifetime that it had."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "update semcache.entry set expires_at = now() - interval '5 seconds', "
            "created_at = now() - interval '5 seconds' - (expires_at - created_at)"
        )


async def lifetime(asker: Asker, database_url: str, **headers: str) -> float:
    """Ask, and give the seconds that the stored answer may live."""
    before = entries(database_url)
    await asker.ask(BODY, **headers)
    async with asyncio.timeout(20):
        while (now := await asyncio.to_thread(entries, database_url)) == before:
            pass
    ((_, seconds),) = now
    return seconds


def entries(database_url: str) -> list[tuple[str, float]]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "select entry_id::text, extract(epoch from expires_at - created_at)::float8 from semcache.entry"
        ).fetchall()


async def test_an_answer_that_comes_again_lives_longer_and_another_one_shorter(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    says(upstream, "At noon.", "At noon.", "At  noon.", "At one.", "At two.", "At three.")
    async with Asker((await start(l1_entries=0)).base) as asker:
        await asker.new_cache(**POLICY)
        lived = []
        for _ in range(6):
            lived.append(await lifetime(asker, database_url))
            grow_old(database_url)
        assert lived == pytest.approx([600, 1200, 2000, 1000, 500, 400], abs=1), "twice and half, within bounds"
        async with asyncio.timeout(20):
            await asker.ask(BODY)
        with psycopg.connect(database_url) as connection:
            (usual,) = connection.execute("select ttl_ms / 1000 from semcache.scope").fetchone() or (0,)
        assert 400 < usual < 1200, "new entries of the scope start where these are"


async def test_a_wish_stands_and_so_does_a_policy_that_adapts_nothing(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    says(upstream, "At noon.")
    async with Asker((await start(l1_entries=0)).base) as asker:
        await asker.new_cache(**POLICY)
        await lifetime(asker, database_url)
        grow_old(database_url)
        assert await lifetime(asker, database_url, x_cache_ttl="77") == pytest.approx(77)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("delete from semcache.entry")
        await asker.new_cache(**POLICY | {"adaptiveTtl": "off"})
        await lifetime(asker, database_url)
        grow_old(database_url)
        assert await lifetime(asker, database_url) == pytest.approx(600)


async def test_a_revalidated_answer_adapts_too(upstream: FakeUpstream, start: Start, database_url: str) -> None:
    says(upstream, "At noon.")
    async with Asker((await start(l1_entries=0)).base) as asker:
        await asker.new_cache(**POLICY, staleWhileRevalidateMillis=60_000)
        await lifetime(asker, database_url)
        grow_old(database_url)
        assert await lifetime(asker, database_url) == pytest.approx(1200)


async def test_what_is_used_much_lives_less_long_and_an_early_look_says_little(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    says(upstream, "At noon.")
    async with Asker((await start(l1_entries=0)).base) as asker:
        await asker.new_cache(**POLICY)
        await lifetime(asker, database_url)
        await asker.ask(BODY)
        async with asyncio.timeout(20):
            while await asyncio.to_thread(hits, database_url) < 1:
                pass
        grow_old(database_url)
        assert await lifetime(asker, database_url) == pytest.approx(900)
        assert await lifetime(asker, database_url, x_cache_refresh="1") == pytest.approx(900, abs=20)


def hits(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        (count,) = connection.execute("select sum(hits) from semcache.entry_usage").fetchone() or (0,)
        return int(count)


@pytest.mark.parametrize("bad", [{"minTtlMillis": 0}, {"adaptiveTtl": "sometimes"}])
async def test_a_policy_that_makes_no_sense_is_refused(start: Start, bad: dict[str, object]) -> None:
    async with Asker((await start()).base) as asker:
        got = await asker.http.post("/v1/caches", json={"name": "bad", "policy": bad}, headers=asker.headers())
        assert got.status_code == 422
        assert next(iter(bad)) in got.json()["detail"]
