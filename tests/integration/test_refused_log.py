"""Rows of the request log that the database refuses."""

from __future__ import annotations

import asyncio

import psycopg

from service.cache.recorder import Recorder, Request
from service.store import caches, tenants
from service.store.database import Database, Limits
from service.telemetry.metrics import Metrics


async def test_rows_that_the_database_refuses_are_counted_and_hold_up_no_others(database_url: str) -> None:
    db = Database(database_url, Limits())
    await db.open()
    recorder = Recorder(db, Metrics(), interval=60)
    for name, tokens in (("a", 1), ("b", 2**40), ("c", 3)):
        tenant = await tenants.ensure(db, name)
        cache = await caches.find(db, tenant.tenant_id, "default")
        request = Request(tenant.tenant_id, cache.cache_id, "hit", "same_request", 0.2, tokens_saved=tokens)
        recorder.note(lambda request=request: request)
    await asyncio.sleep(0)
    await recorder.flush()
    await db.close()
    assert (recorder.dropped, recorder.waiting) == (1, 0)
    with psycopg.connect(database_url) as connection:
        saved = connection.execute("select tokens_saved from semcache.request_log order by 1").fetchall()
    assert saved == [(1,), (3,)]
