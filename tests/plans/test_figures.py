"""What figures cost Postgres while the log is long: what is in the window is read, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from seeded import Seeded, explain, listening

from service.store import caches, requests
from service.store.database import Database

LOG = """
insert into semcache.request_log (at, tenant_id, cache_id, outcome, reason, similarity, latency_ms, stages)
select
    %(now)s - (n - 0.5) * interval '5 seconds',
    %(tenant_id)s, %(cache_id)s, 'miss', 'below_threshold', 0.9, 5, '{"exact": 1}'
from generate_series(1, 120000) n
"""
VERDICTS = """
insert into semcache.observation (at, tenant_id, cache_id, entry_id, similarity, verdict, source)
select
    %(now)s - (n - 0.5) * interval '5 minutes',
    %(tenant_id)s, %(cache_id)s, gen_random_uuid(), 0.97, 'wrong', 'feedback'
from generate_series(1, 50000) n
"""
BLOCK_RANGES = 12_000  # rows of two of them


@pytest.fixture(scope="module")
def now(seeded: Seeded) -> Iterator[datetime]:
    """The end of a week of one request each five seconds, and of half a year of a verdict each five minutes."""
    now = datetime.now(UTC)
    where = {"now": now, "tenant_id": seeded.huge.cache.tenant_id, "cache_id": seeded.huge.cache.cache_id}
    with psycopg.connect(seeded.url, autocommit=True) as connection:
        connection.execute(LOG, where)
        connection.execute(VERDICTS, where)
        connection.execute("vacuum analyze semcache.request_log, semcache.observation")
    yield now
    with psycopg.connect(seeded.url, autocommit=True) as connection:
        connection.execute("truncate semcache.request_log, semcache.observation")


@pytest.mark.parametrize("generic", [False, True])
async def test_figures_read_their_window_alone(seeded: Seeded, db: Database, now: datetime, generic: bool) -> None:
    since = now - timedelta(hours=1)
    with listening() as heard:
        tiers, _ = await requests.traffic(db, seeded.huge.cache, since=since, step=timedelta(minutes=1))
        found = await requests.nearest(db, seeded.huge.cache, since=since, judged_since=since)
        figures, reasons = await caches.stats(db, seeded.huge.cache, since)
    assert (figures["lookups"], reasons) == (720, [{"reason": "below_threshold", "requests": 720}])
    assert [row["requests"] for row in tiers if row["step"] is None] == [720]
    assert (found.requests, [v.reported for v in found.verdicts]) == (720, [12])
    plans = [await explain(db, seeded.huge, asked, generic=generic) for asked in heard if "since" in asked.values]
    log = [plan.touched("request_log") for plan in plans]
    # A plan that is made without the times may go by the block ranges of the log's BRIN index.
    assert max(log) <= BLOCK_RANGES if generic else log == [720, 720, 720, 0, 720, 720]
    assert plans[3].touched("observation") == 12
    assert not set().union(*(plan.scanned for plan in plans)) & {"request_log", "observation"}
