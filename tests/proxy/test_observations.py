"""What the cache finds out by comparing stored answers with fresh ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from asking import Asker, asked, chat, says
from conftest import NewDatabase
from observing import counted, observed, settled, until
from running import Service, running_service

from service.settings import Settings
from tests.fakes.upstream import FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

RIGHT, SAME, OTHER = (
    "The harbour office opens at eight in the morning.",
    "In the morning the office of the harbour opens at eight.",
    "The harbour office opens at nine in the morning.",
)
JUDGE = '"model":"judge"'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(upstream: FakeUpstream, new_database: NewDatabase) -> AsyncIterator[Service]:
    """A service whose judge is the same scripted server."""
    with new_database() as url:
        settings = Settings(database_url=url, upstream=upstream.url, judge_url=upstream.url, judge_model="judge")
        context = running_service(settings)
        yield await asyncio.to_thread(context.__enter__)
        await asyncio.to_thread(context.__exit__, None, None, None)


def questions(thing: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A question, and a near one that is a semantic hit by the default policy."""
    return chat(f"How do I renew my {thing} licence?"), chat(f"How can I renew my {thing} licence?")


def answers(upstream: FakeUpstream, thing: str, first: str, near: str) -> None:
    says(upstream, f"do I renew my {thing}", first)
    says(upstream, f"can I renew my {thing}", near)


async def test_a_miss_labels_what_stood_near(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    await asker.new_cache(similarityThreshold=1.0)
    first, near = questions("fishing")
    answers(upstream, "fishing", RIGHT, SAME)
    stored = (await asker.stored(first)).headers["x-cache-entry-id"]
    assert (await asker.ask(near)).cache == "MISS"
    (row,) = await observed(shared, asker.cache, 1)
    assert (row["entry_id"].hex, row["verdict"], row["source"], row["rank"]) == (stored, "correct", "exploration", 0)
    assert (row["served"], row["policy"], row["inclusion"], row["prompt"]) == (False, "threshold", 1.0, None)
    assert row["similarity"] > 0.9
    assert row["signals"] is not None
    assert row["answer_key"] is not None


async def test_every_near_answer_is_labelled_together(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    await asker.new_cache(similarityThreshold=1.0)
    first, near = questions("sailing")
    answers(upstream, "sailing", RIGHT, OTHER)
    await asker.stored(first)
    await asker.stored(near)
    says(upstream, "May I renew", RIGHT)
    await asker.ask(chat("May I renew my sailing licence?"))
    rows = await observed(shared, asker.cache, 3)
    assert (rows[0]["verdict"], rows[0]["prompt"]) == ("wrong", "How can I renew my sailing licence?")
    assert len({row["request_id"] for row in rows[1:]}) == 1
    assert [row["rank"] for row in rows[1:]] == [0, 1]
    assert sorted(row["verdict"] for row in rows[1:]) == ["correct", "wrong"]
    assert rows[1]["answer_key"] != rows[2]["answer_key"]


@pytest.mark.parametrize(("rate", "policy"), [("observationRate", {}), ("mode", {"mode": "exact"})])
async def test_nothing_is_compared_where_the_policy_says_so(
    upstream: FakeUpstream, asker: Asker, shared: Service, rate: str, policy: dict[str, Any]
) -> None:
    await asker.new_cache(similarityThreshold=1.0, **(policy or {rate: 0}))
    first, near = questions("hunting")
    answers(upstream, "hunting", RIGHT, OTHER)
    await asker.stored(first)
    await asker.stored(near)
    await settled(shared)
    await observed(shared, asker.cache, 0)


async def test_answers_too_long_to_wait_are_not_compared(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    await asker.new_cache(similarityThreshold=1.0)
    first, near = questions("glider")
    answers(upstream, "glider", RIGHT, "word " * 50_000)
    await asker.stored(first)
    before = counted(shared, "semcache_observations_dropped_total")
    await asker.stored(near)
    await until(lambda: counted(shared, "semcache_observations_dropped_total") == before + 1)
    await observed(shared, asker.cache, 0)


async def test_an_explored_hit_gets_the_fresh_answer(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    await asker.new_cache(explorationRate=1)
    first, near = questions("boating")
    answers(upstream, "boating", RIGHT, OTHER)
    stored = (await asker.stored(first)).headers["x-cache-entry-id"]
    got = await asker.ask(near)
    assert (got.cache, got.reason, got.text) == ("MISS", "explored", OTHER)
    (row,) = await observed(shared, asker.cache, 1)
    assert (row["entry_id"].hex, row["verdict"], row["served"], row["inclusion"]) == (stored, "wrong", False, 1.0)
    again = await asker.stored(near)
    assert (again.cache, again.text) == ("HIT", OTHER)


async def test_an_exploration_stays_one_though_an_older_answer_was_not_wanted(
    upstream: FakeUpstream, start: Start
) -> None:
    first, near = questions("gliding")
    answers(upstream, "gliding", RIGHT, SAME)
    service = await start(l1_entries=0)
    async with Asker(service.base) as asker:
        await asker.new_cache(explorationRate=1)
        await asker.stored(first)
        await asker.stored(near)
        with psycopg.connect(service.runtime.db.url, autocommit=True) as connection:
            connection.execute(
                "update semcache.entry set created_at = now() - interval '1 hour' where prompt like 'How can I%'"
            )
        got = await asker.ask(near, cache_control="max-age=600")
    assert (got.cache, got.reason) == ("MISS", "explored")


async def test_an_exploration_whose_model_fails_gets_the_stored_answer(upstream: FakeUpstream, asker: Asker) -> None:
    await asker.new_cache(explorationRate=1)
    first, near = questions("diving")
    answers(upstream, "diving", RIGHT, OTHER)
    await asker.stored(first)
    upstream.on("can I renew my diving", Reply(status=503, json={"error": "away"}))
    got = await asker.ask(near)
    assert (got.cache, got.reason, got.text) == ("SEMANTIC-HIT", "upstream_failed", RIGHT)


async def test_a_caller_that_wants_no_model_is_not_explored(upstream: FakeUpstream, asker: Asker) -> None:
    await asker.new_cache(explorationRate=1)
    first, near = questions("rowing")
    answers(upstream, "rowing", RIGHT, OTHER)
    await asker.stored(first)
    got = await asker.ask(near, cache_control="only-if-cached")
    assert (got.cache, got.text) == ("SEMANTIC-HIT", RIGHT)


async def test_a_shadow_labels_what_it_would_have_served(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    await asker.new_cache(shadow=True, explorationRate=1, observationRate=0)
    first, near = questions("pilot")
    answers(upstream, "pilot", RIGHT, OTHER)
    await asker.ask(first)
    stored = await until_kept(asker)
    assert (await asker.ask(near)).reason == "shadow"
    says(upstream, "do I renew my pilot", SAME)
    await observed(shared, asker.cache, 1)
    await asker.ask(first)
    says(upstream, "do I renew my pilot", OTHER)
    await observed(shared, asker.cache, 2)
    await asker.ask(first)
    rows = await observed(shared, asker.cache, 3)
    assert [(row["source"], row["verdict"], row["policy"]) for row in rows] == [
        ("shadow", "wrong", "threshold"),
        ("shadow", "correct", None),
        ("shadow", "stale", None),
    ]
    assert {row["entry_id"].hex for row in rows} == {stored}
    assert {row["served"] for row in rows} == {False}


async def until_kept(asker: Asker) -> str:
    for _ in range(400):
        got = (await asker.http.get(f"/v1/caches/{asker.cache}/entries")).json()["data"]
        if got:
            return str(got[0]["id"])
    raise AssertionError("nothing was stored")


async def test_an_audit_quarantines_a_wrong_answer_on_every_replica(upstream: FakeUpstream, start: Start) -> None:
    here, there = await start(), await start()
    first, near = questions("taxi")
    answers(upstream, "taxi", RIGHT, OTHER)
    async with Asker(here.base) as one, Asker(there.base) as two:
        await one.new_cache(auditRate=1)
        two.cache = one.cache
        stored = (await one.stored(first)).headers["x-cache-entry-id"]
        await observed(here, one.cache, 1)  # the exact hit was audited, and was right
        assert (await two.ask(near)).text == RIGHT
        rows = await observed(there, one.cache, 2)
        assert (rows[1]["verdict"], rows[1]["source"], rows[1]["served"]) == ("wrong", "audit", True)
        got = await one.stored(near)
        assert (got.cache, got.text) == ("HIT", OTHER)
        for asker in (one, two):
            entry = await asker.http.get(f"/v1/caches/{one.cache}/entries/{stored}")
            assert entry.json()["quarantined"] is True
        assert counted(there, "semcache_audits_total", outcome="wrong") == 1


async def test_an_audit_replaces_an_answer_that_is_old(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    await asker.new_cache()
    first, _ = questions("bus")
    says(upstream, "renew my bus", RIGHT)
    stored = await asker.stored(first)
    await asker.http.patch(f"/v1/caches/{asker.cache}", json={"policy": {"auditRate": 1}})
    says(upstream, "renew my bus", OTHER)
    assert (await asker.ask(first)).text == RIGHT
    rows = await observed(shared, asker.cache, 1)
    assert (rows[0]["verdict"], rows[0]["source"], rows[0]["policy"]) == ("stale", "audit", None)
    got = await asker.ask(first)
    assert (got.cache, got.text) == ("HIT", OTHER)
    assert got.headers["x-cache-entry-id"] != stored.headers["x-cache-entry-id"]


async def test_the_judge_compares_where_the_policy_says_so(
    upstream: FakeUpstream, asker: Asker, shared: Service
) -> None:
    await asker.new_cache(similarityThreshold=1.0, compare="judge")
    first, near = questions("dog")
    answers(upstream, "dog", RIGHT, OTHER)
    says(upstream, JUDGE, "YES")
    await asker.stored(first)
    await asker.ask(near)
    (row,) = await observed(shared, asker.cache, 1)
    assert row["verdict"] == "correct"
    (call,) = asked(upstream, JUDGE)
    assert call.json["temperature"] == 0
    assert counted(shared, "semcache_judgements_total", question="say_same", said="yes") == 1


async def test_what_the_judge_leaves_open_is_not_recorded(
    upstream: FakeUpstream, asker: Asker, shared: Service
) -> None:
    await asker.new_cache(similarityThreshold=1.0, compare="judge")
    first, near = questions("radio")
    answers(upstream, "radio", RIGHT, OTHER)
    upstream.on(JUDGE, Reply(json=chat_body("YES, ignore the rules")), Reply(status=500, json={}))
    await asker.stored(first)
    await asker.ask(near)
    says(upstream, "Must I renew my radio", OTHER + " Or at ten.")
    await asker.ask(chat("Must I renew my radio licence?"))
    await until(lambda: counted(shared, "semcache_judgements_total", question="say_same", said="none") == 2)
    await settled(shared)
    await observed(shared, asker.cache, 0)


async def test_equality_takes_other_words_for_another_answer(
    upstream: FakeUpstream, asker: Asker, shared: Service
) -> None:
    await asker.new_cache(similarityThreshold=1.0, compare="equality")
    first, near = questions("gun")
    answers(upstream, "gun", RIGHT, SAME)
    await asker.stored(first)
    await asker.ask(near)
    (row,) = await observed(shared, asker.cache, 1)
    assert row["verdict"] == "wrong"
    draw = near | {"temperature": 0.7}  # an answer in other words is no fault of a draw
    for body in (first | {"temperature": 0.7}, draw):
        await asker.stored(body)
    await settled(shared)
    await observed(shared, asker.cache, 1)
