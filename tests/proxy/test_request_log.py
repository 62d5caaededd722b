"""What is noted of each request: outcome, session, tokens, cost."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from asking import Asker, chat, says
from psycopg.rows import dict_row

from tests.fakes.upstream import USAGE, FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def logged(asker: Asker, database_url: str, rows: int) -> list[dict[str, Any]]:
    """The rows of the log, oldest first, once there are so many."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True, row_factory=dict_row) as connection:
        for _ in range(400):
            await asker.http.get("/v1/caches/default/stats")  # which writes what waits
            cursor = await connection.execute("select * from semcache.request_log order by at, request_log_id")
            if len(found := await cursor.fetchall()) >= rows:
                return found
    raise AssertionError(f"the log has {len(found)} rows")


async def test_tokens_spent_and_saved_stand_apart(upstream: FakeUpstream, start: Start, database_url: str) -> None:
    says(upstream, "farrier", "Horses.")
    async with Asker((await start(usage_interval=60)).base) as asker:
        await asker.ask(chat("What does a farrier shoe?"))
        await logged(asker, database_url, 1)
        hits = [await asker.ask(chat("What does a farrier shoe?", stream=bool(i))) for i in range(2)]
        await asker.ask(chat("What does a farrier shoe?"), x_cache_mode="off")
        rows = await logged(asker, database_url, 4)
        stats = (await asker.http.get("/v1/caches/default/stats")).json()
    total = USAGE["total_tokens"]
    assert [(r["outcome"], r["tokens_spent"], r["tokens_saved"]) for r in rows] == [
        ("miss", total, 0),
        ("hit", 0, total),
        ("hit", 0, total),
        ("bypass", total, 0),
    ]
    assert {r["entry_id"].hex for r in rows[:3]} == {hits[0].headers["x-cache-entry-id"]}
    assert rows[0]["cost_ms"] > 0
    assert rows[0]["latency_ms"] >= rows[0]["stages"]["exact"]
    assert (stats["hits"], stats["tokensSaved"], stats["tokensSpent"]) == (2, 2 * total, 2 * total)


async def test_vllms_own_figures_are_the_cost(upstream: FakeUpstream, start: Start, database_url: str) -> None:
    metrics = {"time_to_first_token_ms": 40.0, "generation_time_ms": 1200.5}
    upstream.on("wright", Reply(json=chat_body("Wheels.") | {"metrics": metrics}))
    async with Asker((await start(usage_interval=60)).base) as asker:
        await asker.ask(chat("What does a wright make?"))
        assert (await logged(asker, database_url, 1))[0]["cost_ms"] == 1240.5
        odd = {"metrics": metrics | {"generation_time_ms": 1e300}, "usage": {"prompt_tokens": 10**12}}
        upstream.on("smith", Reply(json=chat_body("Irons.") | odd))
        await asker.ask(chat("What does a smith make?"))
        row = (await logged(asker, database_url, 2))[1]
        assert (row["cost_ms"] < 1e9, row["tokens_spent"]) == (True, 0)


async def test_a_conversation_is_one_session_also_on_another_replica(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    upstream.on("/v1/chat/completions", Reply(json=chat_body("Yes.")))
    one = [{"role": "user", "content": "Is the garden room free?"}]
    two = [*one, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And at noon?"}]
    three = [*two, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Book it."}]
    four = [*three, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks."}]
    async with (
        Asker((await start(usage_interval=60)).base) as here,
        Asker((await start(usage_interval=60)).base) as there,
    ):
        for messages in (one, two):
            await here.ask(chat("") | {"messages": messages})
        await logged(here, database_url, 2)
        for number, messages in enumerate((three, four), start=3):
            await there.ask(chat("") | {"messages": messages})
            await logged(there, database_url, number)
        await here.ask(chat("Is the garden room free?"))
        await here.ask(chat("Mine alone"), x_session_id="visit-5")
        await here.ask(chat("In the body", session_id="visit-6\x00"))
        await here.ask({"model": "small-chat", "input": "a"}, path="/v1/embeddings")
        rows = await logged(here, database_url, 8)
    sessions = [row["session"] for row in rows]
    assert len(set(sessions[:4])) == 1
    assert sessions[4] not in (None, sessions[0])  # the same first question begins a new session
    assert sessions[5:7] == ["visit-5", "visit-6\ufffd"]
    assert sessions[7] is None
