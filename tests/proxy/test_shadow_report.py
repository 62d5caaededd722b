"""What a cache in shadow would have served, from its requests to the report."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from asking import Asker, chat, says
from running import Service

from service.cli import main
from tests.fakes.upstream import FakeUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENTRIES = "select count(*) from semcache.entry join semcache.cache c using (cache_id) where c.name = %s"
LABELLED = """
select count(distinct o.request_id) from semcache.observation o join semcache.cache c using (cache_id) where c.name = %s
"""
LOGGED = "select count(*) from semcache.request_log join semcache.cache c using (cache_id) where c.name = %s"
THINGS = ("fishing", "pilot", "taxi", "radio", "trade", "street", "music", "market")


async def until_there(asker: Asker, shared: Service, statement: LiteralString, number: int) -> None:
    """Return once a count of the cache's rows has come to this."""
    url = shared.runtime.settings.database_url
    assert url is not None
    async with await psycopg.AsyncConnection.connect(url.get_secret_value(), autocommit=True) as connection:
        for _ in range(2000):
            (found,) = await (await connection.execute(statement, (asker.cache,))).fetchone() or (0,)
            if found >= number:
                return
            await asyncio.sleep(0.005)
    raise AssertionError(f"{found} of {number}")


async def test_a_shadow_is_reported_with_its_false_hits(
    upstream: FakeUpstream, asker: Asker, shared: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await asker.new_cache(shadow=True)
    for number, thing in enumerate(THINGS):
        says(upstream, f"do I renew my {thing}", f"At the {thing} office.")
        says(upstream, f"can I renew my {thing}", f"At the {thing} office." if number % 2 else "On the web page.")
        await asker.ask(chat(f"How do I renew my {thing} licence?"))
        await until_there(asker, shared, ENTRIES, number + 1)
    for thing in THINGS:
        assert (await asker.ask(chat(f"How can I renew my {thing} licence?"))).reason == "shadow"
    await until_there(asker, shared, LABELLED, 2 * len(THINGS) - 1)
    await until_there(asker, shared, LOGGED, 2 * len(THINGS))

    figures, url = tmp_path / "figures.json", shared.runtime.settings.database_url
    assert url is not None
    where = ["--database-url", url.get_secret_value(), "--cache", asker.cache]
    monkeypatch.setattr(sys, "argv", ["pgsemcache", "calibrate", *where, "--json", str(figures)])
    with pytest.raises(SystemExit):
        await asyncio.to_thread(main)
    rows = json.loads(figures.read_text())["rows"]
    (found,) = [row["point"] for row in rows if (row["policy"], row["setting"]) == ("threshold", 0.9)]
    assert found["semantic_hits"] == len(THINGS), "the later half of the labelled requests are the near ones"
    assert found["false_per_semantic_hit"]["rate"] == 0.5
