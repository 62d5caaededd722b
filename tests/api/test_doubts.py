"""Searches that end in doubt, judged in the background: the data API has no fresh answer to compare with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asking import says
from calls import Cache, new_cache
from conftest import NewDatabase
from observing import counted, observed, settled, until
from running import Service, running_service

from service.settings import Settings
from tests.fakes.upstream import FakeUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

JUDGE = '"model":"judge"'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judge() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(judge: FakeUpstream, new_database: NewDatabase) -> AsyncIterator[Service]:
    with new_database() as url:
        context = running_service(Settings(database_url=url, judge_url=judge.url, judge_model="judge"))
        yield await asyncio.to_thread(context.__enter__)
        await asyncio.to_thread(context.__exit__, None, None, None)


async def cache_of(service: Service, **policy: Any) -> Cache:
    """A cache in which near prompts are in doubt, with one answer."""
    cache = await asyncio.to_thread(new_cache, service.http, similarityThreshold=0.999, **policy)
    await asyncio.to_thread(cache.store, "Where may I pitch my tent?", "On the meadow.")
    return cache


async def look(cache: Cache, prompt: str, **fields: Any) -> dict[str, Any]:
    return await asyncio.to_thread(cache.look, prompt, **fields)


async def test_what_the_judge_finds_right_is_an_exact_hit_from_then_on(judge: FakeUpstream, service: Service) -> None:
    cache = await cache_of(service, judgeDoubts=True)
    says(judge, JUDGE, "YES")
    asked = "Where can I pitch a tent?"
    assert (await look(cache, asked))["reason"] == "below_threshold"
    (row,) = await observed(service, cache.name, 1)
    assert (row["source"], row["verdict"], row["inclusion"], row["rank"]) == ("judge", "correct", 1.0, 0)
    found = await look(cache, asked)
    assert (found["reason"], found["data"][0]["response"]) == ("same_request", "On the meadow.")
    entry = await asyncio.to_thread(cache.read, found["data"][0]["id"])
    assert (entry["prompt"], entry["aliasOf"]) == (asked, row["entry_id"].hex)
    assert counted(service, "semcache_aliases_total") == 1
    await asyncio.to_thread(cache.post, "feedback", {"entryId": row["entry_id"].hex, "verdict": "wrong"})
    assert (await look(cache, asked))["data"] == []


async def test_a_replaced_answer_is_served_under_no_other_request(judge: FakeUpstream, service: Service) -> None:
    cache = await cache_of(service, judgeDoubts=True)
    says(judge, JUDGE, "YES")
    await look(cache, "Where can I pitch a tent?")
    await observed(service, cache.name, 1)
    for _ in range(2):
        assert (await look(cache, "Where can I pitch a tent?"))["reason"] == "same_request"
    await asyncio.to_thread(cache.store, "Where may I pitch my tent?", "By the lake.")
    assert (await look(cache, "Where can I pitch a tent?"))["reason"] != "same_request"


async def test_what_the_judge_finds_wrong_is_noted(judge: FakeUpstream, service: Service) -> None:
    cache = await cache_of(service, judgeDoubts=True)
    says(judge, JUDGE, "NO")
    await look(cache, "Where can I pitch a tent?")
    (row,) = await observed(service, cache.name, 1)
    assert (row["verdict"], row["prompt"]) == ("wrong", "Where can I pitch a tent?")
    assert (await look(cache, "Where can I pitch a tent?"))["data"] == []


async def test_a_second_stage_that_accepts_is_asked_once(judge: FakeUpstream, service: Service) -> None:
    cache = await cache_of(service, secondStage="judge")
    says(judge, JUDGE, "YES")
    before = len(judge.calls)
    assert (await look(cache, "Where can I pitch a tent?"))["reason"] == "second_stage_accepted"
    await observed(service, cache.name, 1)
    assert (await look(cache, "Where can I pitch a tent?"))["reason"] == "same_request"
    assert len(judge.calls) == before + 1


@pytest.mark.parametrize("policy", [{}, {"judgeDoubts": True, "doubtThreshold": 0.999}])
async def test_nothing_is_judged_unasked(judge: FakeUpstream, service: Service, policy: dict[str, Any]) -> None:
    cache = await cache_of(service, **policy)
    before = len(judge.calls)
    await look(cache, "Where can I pitch a tent?")
    await until(lambda: not service.runtime.doubts._tasks)
    await settled(service)
    assert len(judge.calls) == before
    await observed(service, cache.name, 0)
