"""Prefetch over real HTTP: a stream of sessions, an answer that ended, a model server with its load."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest
from asking import Asker, asked, chat, says
from stages import QUESTIONS, TTL, Stage, serving

from tests.fakes.upstream import Reply, chat_body
from workers.prefetch import Prefetched


def did(run: Prefetched) -> tuple[dict[str, int], str]:
    return run.outcomes, run.ended


async def test_an_answer_that_ended_is_there_before_it_is_asked_for(stage: Stage) -> None:
    await stage.visits()
    edges = stage.rows("select prompt, next_prompt, seen from top_edges order by prompt")
    assert [(e["prompt"], e["next_prompt"]) for e in edges] == [QUESTIONS[:2], QUESTIONS[1:]]
    assert did(await stage.run()) == ({}, "no_candidate")
    stage.expire(QUESTIONS[1])
    stage.upstream.calls.clear()
    says(stage.upstream, "/v1/chat/completions", "Nine a year.")
    assert did(await stage.run()) == ({"stored": 1}, "no_candidate")
    (call,) = asked(stage.upstream, QUESTIONS[1])
    assert "priority" not in call.json
    got = await stage.asker.ask(chat(QUESTIONS[1]), x_session_id="late")
    assert (got.cache, got.text) == ("HIT", "Nine a year.")
    entry = (
        await stage.asker.http.get(f"/v1/caches/{stage.asker.cache}/entries/{got.headers['x-cache-entry-id']}")
    ).json()
    assert entry["provenance"] == "prefetch"
    assert len(asked(stage.upstream, QUESTIONS[1])) == 1
    await stage.grow()
    (value,) = stage.rows("select asked, used, wasted, hits, tokens, tokens_wasted from prefetch_value")
    assert value["tokens"] > 0
    assert value | {"tokens": 0} == {"asked": 1, "used": 1, "wasted": 0, "hits": 1, "tokens": 0, "tokens_wasted": 0}


async def test_what_nobody_came_for_is_waste(stage: Stage) -> None:
    await stage.visits()
    stage.expire(QUESTIONS[0])
    await stage.run()
    assert stage.rows("select outcome, why from prefetch_log") == [{"outcome": "waiting", "why": "expired"}]
    stage.expire(QUESTIONS[0])
    (value,) = stage.rows("select wasted, tokens = tokens_wasted as all_wasted from prefetch_value")
    assert value == {"wasted": 1, "all_wasted": True}
    await stage.run()
    logged = stage.rows("select outcome, prompt from prefetch_log order by at")
    assert logged == [
        {"outcome": "wasted", "prompt": QUESTIONS[0]},
        {"outcome": "waiting", "prompt": QUESTIONS[0]},
    ]


async def test_an_evicted_answer_and_one_that_is_about_to_end_come_back(stage: Stage) -> None:
    await stage.visits()
    stage.sql.execute("delete from entry where prompt = %s", (QUESTIONS[0],))
    stage.expire(QUESTIONS[1], seconds=5)
    assert (await stage.run()).outcomes == {"stored": 2}
    whys = {row["why"] for row in stage.rows("select why from prefetch")}
    assert whys == {"missing", "expiring"}
    assert stage.rows("select count(*) as n from entry where expires_at > now() + interval '9 minutes'") == [{"n": 3}]


async def test_a_new_revision_is_warmed_from_the_centre(stage: Stage) -> None:
    await stage.visits()
    stage.upstream.on("/version", Reply(json={"version": "2"}))
    stage.upstream.calls.clear()
    assert (await stage.run()).outcomes == {"stored": 3}
    async with serving(stage.settings) as after, Asker(after.base, stage.asker.cache) as again:
        hits = [(await again.ask(chat(question))).cache for question in QUESTIONS]
    assert hits == ["HIT", "HIT", "HIT"]


@pytest.mark.parametrize(
    ("metrics", "asks"),
    [
        ('vllm:num_requests_waiting{engine="0"} 1.0\n', False),
        ('vllm:kv_cache_usage_perc{engine="0"} 0.2\nvllm:kv_cache_usage_perc{engine="1"} 0.8\n', False),
        ('vllm:num_requests_waiting{engine="0"} 0.0\nvllm:kv_cache_usage_perc{engine="0"} 0.7\n', True),
        ("other_metric 9\n", True),
    ],
)
async def test_only_while_the_model_server_has_room(
    stage: Stage,
    metrics: str,
    asks: bool,
) -> None:
    stage.upstream.on("/metrics", Reply(chunks=[metrics.encode()], headers={"content-type": "text/plain"}))
    await stage.visits()
    stage.expire(QUESTIONS[0])
    stage.upstream.calls.clear()
    found = await stage.run()
    assert did(found) == (({"stored": 1}, "no_candidate") if asks else ({}, "no_room"))
    assert len(asked(stage.upstream, QUESTIONS[0])) == int(asks)


@pytest.mark.parametrize(("status", "outcome", "ended"), [(503, "busy", "busy"), (400, "failed", "no_candidate")])
async def test_a_server_that_turns_it_away_is_left_alone(
    stage: Stage,
    status: int,
    outcome: str,
    ended: str,
) -> None:
    await stage.visits()
    stage.expire(QUESTIONS[0])
    stage.upstream.on("/v1/chat/completions", Reply(status=status, json={"error": {"message": "no"}}))
    assert did(await stage.run()) == ({outcome: 1}, ended)
    assert did(await stage.run()) == ({}, "no_candidate")
    stage.sql.execute("update prefetch set at = at - interval '11 minutes'")
    assert (await stage.run()).outcomes == {outcome: 1}


@pytest.mark.parametrize("limit", ["prefetch_tokens", "prefetch_tenant_tokens"])
async def test_budgets_of_an_hour_are_kept(stage: Stage, limit: str) -> None:
    await stage.visits()
    stage.expire(*QUESTIONS)
    tokens = stage.rows("select max(tokens) as tokens from request_body")[0]["tokens"]
    assert (await stage.run(**{limit: 2 * tokens + 1})).outcomes == {"stored": 2}
    assert (await stage.run(**{limit: 2 * tokens + 1})).outcomes == {}
    stage.sql.execute("update prefetch set at = at - interval '61 minutes'")
    assert (await stage.run(**{limit: 2 * tokens + 1})).outcomes == {"stored": 1}


async def test_a_likely_question_comes_before_a_rare_one_and_a_rare_one_not_at_all(stage: Stage) -> None:
    rare = "Which colour is the form?"
    await stage.visits(count=12)
    await stage.asker.stored(chat(rare), x_session_id="rare")
    await stage.grow()
    stage.sql.execute("update request_graph set began_at = now() - interval '1 day'")
    stage.sql.execute("update request_body set cost_ms = 100")
    stage.expire(rare, *QUESTIONS)
    stage.upstream.calls.clear()
    assert (await stage.run(prefetch_horizon=3600.0, prefetch_gain=100.0)).outcomes == {"stored": 4}
    order = [call.json["messages"][0]["content"] for call in stage.upstream.calls if b"messages" in call.body]
    assert order[-1] == rare
    stage.expire(rare, *QUESTIONS)
    assert (await stage.run(prefetch_gain=1.01)).outcomes == {}


async def test_nothing_is_kept_or_asked_where_the_policy_does_not_say_so(stage: Stage) -> None:
    kept = stage.asker.cache
    await stage.visits()
    await stage.asker.new_cache(ttlMillis=TTL * 1000)
    await stage.visits()
    caches = stage.rows("select distinct c.name from request_body join cache c using (cache_id)")
    assert caches == [{"name": kept}]
    stage.expire(*QUESTIONS)
    assert (await stage.run()).outcomes == {"stored": 3}
    changed = await stage.asker.http.patch(f"/v1/caches/{kept}", json={"policy": {"prefetch": False}})
    assert changed.status_code == 200
    assert did(await stage.run()) == ({}, "nothing_kept")
    await stage.grow()
    assert stage.rows("select from request_body") == []


async def test_a_deleted_request_is_forgotten(stage: Stage) -> None:
    await stage.visits()
    (entry,) = stage.rows(f"select entry_id from entry where prompt = '{QUESTIONS[0]}'")
    gone = await stage.asker.http.delete(f"/v1/caches/{stage.asker.cache}/entries/{entry['entry_id'].hex}")
    assert gone.status_code == 204
    deleted = await stage.asker.http.request(
        "DELETE", f"/v1/caches/{stage.asker.cache}/entries", json={"model": "small-chat", "dryRun": True}
    )
    assert (deleted.json(), len(stage.rows("select from request_body"))) == ({"deletedEntriesCount": 2}, 2)
    await stage.asker.http.request("DELETE", f"/v1/caches/{stage.asker.cache}/entries", json={"model": "small-chat"})
    assert stage.rows("select from request_body") == []


async def test_a_kept_request_holds_what_changes_the_answer_and_nothing_else(stage: Stage) -> None:
    body = chat("Who \x00 am I?", top_p=0.5, seed=7, stream=False, metadata={"person": "p"}, session_id="s", priority=3)
    await stage.asker.stored(body, authorization="Bearer of-the-caller", x_cache_ttl="60", x_cache_tags="one,two")
    (kept,) = stage.rows("select body::text as body, tags, ttl_ms from request_body")
    assert kept["tags"] == ["one", "two"]
    assert kept["ttl_ms"] == 60_000
    assert set(json.loads(kept["body"])) == {"model", "temperature", "messages", "top_p", "seed"}
    await stage.asker.stored(chat("apart"), helicone_cache_seed="salted")
    await stage.asker.stored(chat("long " * 20_000))
    assert len(stage.rows("select from request_body")) == 1


async def test_a_priority_is_sent_where_it_is_set(stage: Stage) -> None:
    await stage.visits()
    stage.expire(QUESTIONS[0])
    stage.upstream.calls.clear()
    await stage.run(prefetch_priority=10)
    (call,) = asked(stage.upstream, QUESTIONS[0])
    assert call.json["priority"] == 10
    assert (await stage.asker.ask(chat(QUESTIONS[0]))).cache == "HIT"


async def test_a_user_who_asks_meanwhile_waits_for_the_same_answer(stage: Stage) -> None:
    await stage.visits()
    stage.expire(QUESTIONS[0])
    stage.upstream.forget()
    hold = asyncio.Event()
    stage.upstream.on("/v1/chat/completions", Reply(json=chat_body("Once."), hold=hold))
    ahead = asyncio.create_task(stage.run())
    await stage.asked(QUESTIONS[0])
    user = asyncio.create_task(stage.asker.ask(chat(QUESTIONS[0])))
    hold.set()
    assert (await ahead).outcomes == {"stored": 1}
    assert (await user).text == "Once."
    assert len(asked(stage.upstream, QUESTIONS[0])) == 1


async def test_a_worker_that_is_killed_while_it_asks_leaves_a_budget_that_counts_it(stage: Stage) -> None:
    await stage.visits()
    stage.expire(QUESTIONS[0])
    stage.upstream.forget()
    stage.upstream.on("/v1/chat/completions", Reply(json=chat_body("Never read."), hold=asyncio.Event()))
    killed = stage.start_worker(SEMCACHE_PREFETCH_INTERVAL="0.2")
    try:
        await stage.asked(QUESTIONS[0])
    finally:
        killed.send_signal(signal.SIGKILL)
        await asyncio.to_thread(killed.communicate)
    (left,) = stage.rows("select outcome, tokens > 0 as counted from prefetch")
    assert left == {"outcome": "asking", "counted": True}
    says(stage.upstream, "/v1/chat/completions", "As ever.")
    assert (await stage.run()).outcomes == {}
    stage.sql.execute("update prefetch set at = at - interval '11 minutes'")
    assert stage.rows("select outcome from prefetch_log") == [{"outcome": "broken off"}]
    assert (await stage.run()).outcomes == {"stored": 1}
