"""A second look at near entries in doubt: by the judge, by a cross-encoder, in time or not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from asking import Asker, asked, chat, says
from conftest import NewDatabase
from observing import counted, until
from running import Service, running_service

from service.settings import Settings
from tests.fakes.upstream import FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

JUDGE = '"model":"judge"'
MAKER = Path(__file__).parents[1] / "tiny_cross_encoder.py"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(
    upstream: FakeUpstream, new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Service]:
    """A service with a judge, which is the same scripted server, and with a cross-encoder of random weights."""
    folder = tmp_path_factory.mktemp("cross-encoder")
    (folder / "pairs.json").write_text(json.dumps([["Where may I moor my boat?", "Can I moor a boat here?"]]))
    await asyncio.to_thread(subprocess.run, [sys.executable, MAKER, folder, "1"], check=True, capture_output=True)
    with new_database() as url:
        settings = Settings(
            database_url=url,
            upstream=upstream.url,
            judge_url=upstream.url,
            judge_model="judge",
            cross_encoder=str(folder / "model"),
        )
        context = running_service(settings)
        service = await asyncio.to_thread(context.__enter__)
        await until(lambda: service.runtime.cross_encoder._open is not None, seconds=120)
        yield service
        await asyncio.to_thread(context.__exit__, None, None, None)


async def doubtful(upstream: FakeUpstream, asker: Asker, thing: str, **policy: Any) -> dict[str, Any]:
    """Store an answer; the question that this gives is in doubt: near enough, and below the threshold."""
    await asker.new_cache(similarityThreshold=0.999, **policy)
    says(upstream, f"moor my {thing}", "At the east quay.")
    says(upstream, f"moor a {thing}", "At the west quay.")
    await asker.stored(chat(f"Where may I moor my {thing}?"))
    return chat(f"Where can I moor a {thing}?")


async def test_what_the_judge_accepts_is_served(upstream: FakeUpstream, asker: Asker, shared: Service) -> None:
    body = await doubtful(upstream, asker, "yacht", secondStage="judge")
    says(upstream, JUDGE, "YES")
    got = await asker.ask(body)
    assert (got.cache, got.reason, got.text) == ("SEMANTIC-HIT", "second_stage_accepted", "At the east quay.")
    (call,) = asked(upstream, JUDGE)
    assert json.loads(call.json["messages"][1]["content"]) == {
        "stored_question": "Where may I moor my yacht?",
        "stored_answer": "At the east quay.",
        "new_question": "Where can I moor a yacht?",
    }
    assert counted(shared, "semcache_second_stages_total", stage="judge", outcome="accepted") == 1
    await until(lambda: counted(shared, "semcache_stage_seconds_count", stage="second_stage") >= 1)


async def test_what_the_judge_rejects_is_a_miss(upstream: FakeUpstream, asker: Asker) -> None:
    body = await doubtful(upstream, asker, "ketch", secondStage="judge")
    says(upstream, JUDGE, "NO")
    got = await asker.ask(body)
    assert (got.cache, got.reason, got.text) == ("MISS", "second_stage_rejected", "At the west quay.")


@pytest.mark.parametrize("reply", [Reply(hold=asyncio.Event()), Reply(status=500, json={})], ids=["late", "away"])
async def test_a_judge_that_is_late_or_away_makes_a_miss(upstream: FakeUpstream, start: Start, reply: Reply) -> None:
    service = await start(judge_url=upstream.url, judge_model="judge", second_stage_deadline=0.5)
    async with Asker(service.base) as asker:
        body = await doubtful(upstream, asker, "brig", secondStage="judge")
        upstream.on(JUDGE, reply)
        got = await asker.ask(body)
        assert (got.cache, got.reason, got.text) == ("MISS", "second_stage_failed", "At the west quay.")
        assert (await asker.ask(body, x_cache_refresh="true")).cache == "REFRESH"


async def test_what_is_no_doubt_is_not_looked_at(upstream: FakeUpstream, asker: Asker) -> None:
    body = await doubtful(upstream, asker, "sloop", secondStage="judge", doubtThreshold=0.999)
    says(upstream, JUDGE, "YES")
    assert (await asker.ask(body)).reason == "below_threshold"
    body = await doubtful(upstream, asker, "barge", secondStage="judge")
    says(upstream, JUDGE, "YES")
    assert (await asker.ask(chat("Where may I not moor my barge?"))).cache == "MISS"  # a guard blocks it
    assert (await asker.ask(body, x_cache_threshold="0.9999")).cache == "MISS"  # the caller wants it nearer
    assert not asked(upstream, JUDGE)


async def test_what_has_no_calibration_stays_strict(upstream: FakeUpstream, asker: Asker) -> None:
    body = await doubtful(upstream, asker, "trawler", secondStage="judge", decision="calibrated")
    says(upstream, JUDGE, "YES")
    got = await asker.ask(body)
    assert (got.cache, got.reason) == ("MISS", "uncalibrated")
    assert not asked(upstream, JUDGE)


async def test_the_data_api_and_explain_look_twice_too(upstream: FakeUpstream, asker: Asker) -> None:
    await asker.new_cache(similarityThreshold=0.999, secondStage="judge")
    says(upstream, JUDGE, "YES")
    entries = f"/v1/caches/{asker.cache}/entries"
    stored = {"prompt": "Where may I moor my punt?", "response": "Under the bridge."}
    assert (await asker.http.post(entries, json=stored)).status_code == 201
    found = (await asker.http.post(f"{entries}/search", json={"prompt": "Where can I moor a punt?"})).json()
    assert (found["reason"], found["data"][0]["response"]) == ("second_stage_accepted", "Under the bridge.")
    says(upstream, JUDGE, "NO")
    asks = {"prompt": "Where could I moor a punt?"}
    told = (await asker.http.post(f"/v1/caches/{asker.cache}/explain", json=asks)).json()
    assert (told["outcome"], told["reason"]) == ("miss", "second_stage_rejected")


@pytest.mark.parametrize(
    ("least", "cache", "reason"),
    [(0.0, "SEMANTIC-HIT", "second_stage_accepted"), (1.0, "MISS", "second_stage_rejected")],
)
async def test_a_cross_encoder_accepts_from_a_probability_on(
    upstream: FakeUpstream, asker: Asker, least: float, cache: str, reason: str
) -> None:
    body = await doubtful(upstream, asker, "ferry", secondStage="cross_encoder", secondStageThreshold=least)
    got = await asker.ask(body)
    assert (got.cache, got.reason) == (cache, reason)
    assert not asked(upstream, JUDGE)


async def test_a_pair_that_the_cross_encoder_does_not_read_whole_is_a_miss(
    upstream: FakeUpstream, asker: Asker
) -> None:
    thing = "small wooden boat with an old sail, a new mast, a red keel and a very long blue rudder " * 2
    body = await doubtful(upstream, asker, thing, secondStage="cross_encoder", secondStageThreshold=0)
    assert (await asker.ask(body)).reason == "second_stage_failed"


async def test_a_judge_may_only_say_one_word(upstream: FakeUpstream, asker: Asker) -> None:
    body = await doubtful(upstream, asker, "canoe", secondStage="judge")
    upstream.on(JUDGE, Reply(json=chat_body("YES. And now something else")))
    assert (await asker.ask(body)).reason == "second_stage_failed"
