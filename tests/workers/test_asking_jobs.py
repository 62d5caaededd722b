"""The jobs warm and revalidate: kept requests are asked of the model again, the most central first."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest
from asking import Asker, asked, chat, says
from stages import QUESTIONS, Stage, serving

from service.settings import Successor
from tests.fakes.upstream import FakeUpstream, Reply, chat_body
from workers import jobs

CENTRAL = "select prompt from top_nodes order by markov desc"
AGE = "update entry set created_at = created_at - interval '1 hour'"


async def do(stage: Stage, kind: str, **changes: Any) -> dict[str, Any]:
    """Ask for a job, let a worker do it, and say how it ended."""
    job = await ask_for(stage, kind)
    await jobs.run_once(stage.worker, stage.settings.model_copy(update=changes))
    return await look(stage, job)


async def ask_for(stage: Stage, kind: str) -> str:
    got = await stage.asker.http.post(f"/v1/caches/{stage.asker.cache}/jobs", json={"kind": kind})
    assert got.status_code == 202, got.text
    job_id: str = got.json()["id"]
    return job_id


async def look(stage: Stage, job: str) -> dict[str, Any]:
    got = await stage.asker.http.get(f"/v1/caches/{stage.asker.cache}/jobs/{job}")
    return {name: got.json()[name] for name in ("state", "done", "failed", "total", "changed")}


def done(count: int, *, changed: int = 0) -> dict[str, Any]:
    return {"state": "done", "done": count, "failed": 0, "total": count, "changed": changed}


async def hits(asker: Asker) -> list[tuple[str | None, str | None]]:
    found = [await asker.ask(chat(question)) for question in QUESTIONS]
    return [(got.cache, got.text) for got in found]


async def test_a_successor_is_warmed_while_the_present_revision_serves(stage: Stage) -> None:
    await stage.visits()
    async with FakeUpstream() as new:
        says(new, "/v1/chat/completions", "As of now.")
        new.on("/version", Reply(json={"version": "2"}))
        successor = Successor(url=new.url, revision="v2")
        assert await do(stage, "warm", successors={"small-chat": successor}) == done(3)
        order = [call.json["messages"][0]["content"] for call in new.calls if call.target.endswith("completions")]
        assert order == [row["prompt"] for row in stage.rows(CENTRAL)]
        stage.upstream.calls.clear()
        assert await hits(stage.asker) == [("HIT", "As ever.")] * 3
        assert (await stage.run()).outcomes == {"landed": 3}, "what both revisions have is not asked ahead again"
        switched = stage.settings.model_copy(update={"successors": {"small-chat": successor}}).after_switch()
        async with serving(switched) as after, Asker(after.base, stage.asker.cache) as again:
            assert await hits(again) == [("HIT", "As of now.")] * 3
        assert [call for call in stage.upstream.calls if call.target.endswith("completions")] == []


async def test_warming_asks_only_for_what_is_not_there(stage: Stage) -> None:
    await stage.visits()
    stage.sql.execute("delete from entry where prompt = %s", (QUESTIONS[0],))
    stage.upstream.calls.clear()
    assert await do(stage, "warm") == done(3)
    assert [len(asked(stage.upstream, question)) for question in QUESTIONS] == [1, 0, 0]
    assert await hits(stage.asker) == [("HIT", "As ever.")] * 3


async def test_revalidation_replaces_answers_and_counts_those_that_changed(stage: Stage) -> None:
    await stage.visits()
    stage.sql.execute(AGE)
    stage.sql.execute("update entry set pinned = true where prompt = %s", (QUESTIONS[2],))
    stage.upstream.calls.clear()
    stage.upstream.on(QUESTIONS[0], Reply(json=chat_body("Online since May.")))
    assert await do(stage, "revalidate") == done(2, changed=1)
    assert [len(asked(stage.upstream, question)) for question in QUESTIONS] == [1, 1, 0]
    assert await hits(stage.asker) == [("HIT", "Online since May."), ("HIT", "As ever."), ("HIT", "As ever.")]
    assert stage.rows("select changed from jobs") == [{"changed": 1}]


async def test_what_the_model_refuses_fails_alone_and_a_cache_that_keeps_no_requests_is_told(stage: Stage) -> None:
    await stage.visits()
    stage.sql.execute(AGE)
    stage.upstream.on(QUESTIONS[0], Reply(status=400, json={"error": {"message": "no"}}))
    assert await do(stage, "revalidate") == done(2) | {"failed": 1, "total": 3}
    assert await hits(stage.asker) == [("HIT", "As ever.")] * 3
    await stage.asker.new_cache()
    got = await stage.asker.http.post(f"/v1/caches/{stage.asker.cache}/jobs", json={"kind": "warm"})
    assert (got.status_code, "prefetch" in got.json()["detail"]) == (422, True)


@pytest.mark.parametrize("kind", ["warm", "revalidate"])
async def test_a_worker_killed_while_it_asks_is_followed_by_another(stage: Stage, kind: str) -> None:
    await stage.visits()
    job = await ask_for(stage, kind)
    stage.sql.execute(AGE)
    stage.sql.execute("update entry set expires_at = now() where %s", (kind == "warm",))
    stage.upstream.forget()
    stage.upstream.on("/v1/chat/completions", Reply(json=chat_body("Never read."), hold=asyncio.Event()))
    killed = stage.start_worker()
    try:
        async with asyncio.timeout(60):
            while not any(asked(stage.upstream, question) for question in QUESTIONS):
                stage.upstream.arrived.clear()
                await stage.upstream.arrived.wait()
    finally:
        killed.send_signal(signal.SIGKILL)
        await asyncio.to_thread(killed.communicate)
    says(stage.upstream, "/v1/chat/completions", "As ever.")
    stage.sql.execute("update job set leased_until = now() where leased_until is not null")
    stage.sql.execute("delete from lease where name like 'flight:%'")
    await jobs.run_once(stage.worker, stage.settings)
    assert await look(stage, job) == done(3)
    assert await hits(stage.asker) == [("HIT", "As ever.")] * 3
