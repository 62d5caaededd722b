"""The worker learns from the request log of a limited cache."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg.types.json import Jsonb
from sessions import Session, key, open_session

from service.store.database import Database
from service.store.eviction import decaying, recent_requests
from workers import half_life


@pytest.fixture
def app(database_url: str) -> Iterator[Session]:
    session = open_session(database_url, "acme")
    yield session
    session.connection.close()


def log(app: Session, cache_id: int, *rows: tuple[str, str, str | None]) -> None:
    """Requests in this order: outcome, request, entry."""
    app.call(
        "record_requests",
        tenant_id=app.tenant_id,
        requests=Jsonb(
            [
                {
                    "at": f"2030-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z",
                    "cache_id": cache_id,
                    "request_key": key(asked).hex(),
                    "entry_id": entry,
                    "outcome": outcome,
                    "reason": "x",
                    "latency_ms": 1,
                    "tokens_saved": 0,
                    "tokens_spent": 0,
                }
                for number, (outcome, asked, entry) in enumerate(rows)
            ]
        ),
    )


async def test_a_neighbours_answer_counts_for_the_request_it_was_made_for(app: Session, worker: Database) -> None:
    cache_id = app.cache("full", {"maxEntries": 10})
    entry = "00000000-0000-0000-0000-000000000001"
    log(
        app,
        cache_id,
        ("miss", "a", entry),
        ("semantic_hit", "a, please", entry),
        ("hit", "a", entry),
        ("miss", "b", None),
        ("bypass", "c", None),
    )
    assert await recent_requests(worker, cache_id, 100) == [key("a"), key("a"), key("a"), key("b")]
    assert await recent_requests(worker, cache_id, 2) == [key("a"), key("b")]


async def test_only_limited_caches_learn_and_each_what_its_log_says(app: Session, worker: Database) -> None:
    free, full = app.cache("free", {}), app.cache("full", {"maxEntries": 4})
    by_age = app.cache("age", {"maxEntries": 2, "eviction": "lru"})
    for cache_id in (free, full, by_age):
        app.store(cache_id=cache_id)
    async with worker.connection() as connection:
        await connection.execute("select semcache.fold_changes()")
    assert [cache.cache_id for cache in await decaying(worker)] == [full]
    log(app, full, *(("miss", f"{number // 40} {number * number % 7}", None) for number in range(800)))  # fashions
    async with worker.connection() as connection:
        await connection.execute("update semcache.cache_size set half_life = 1000000")
    assert await half_life.run_once(worker) == half_life.Learned(caches=1, changed=1)
    (learned,) = await decaying(worker)
    assert learned.half_life < 1000
    assert await half_life.run_once(worker) == half_life.Learned(caches=1, changed=0)
