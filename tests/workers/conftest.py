"""The door as a worker uses it, and something to work on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
from asking import Asker, says
from psycopg.rows import dict_row
from stages import TTL, Stage, serving
from stored import Cached, cached

from service.settings import Settings
from service.store.database import Database, Limits
from tests.fakes.embeddings import embedding_server
from tests.fakes.upstream import FakeUpstream


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[Database]:
    door = Database(database_url, Limits(pool_min=1, pool_max=4, timeout=30.0), role="semcache_worker")
    await door.open()
    yield door
    await door.close()


@pytest.fixture
async def known(database_url: str) -> AsyncIterator[Cached]:
    """A tenant's cache with one entry, as the service sees it."""
    db = Database(database_url, Limits(pool_min=1, timeout=30.0))
    await db.open()
    yield await cached(db)
    await db.close()


@pytest.fixture(scope="session")
def embedder() -> Iterator[dict[str, Any]]:
    """Settings of an embedder that costs no time."""
    with embedding_server() as fake:
        yield {"embedder": "remote", "embedder_url": fake.url, "embedder_model": "m", "embedder_languages": ("mul",)}


@pytest.fixture
async def stage(database_url: str, worker: Database, embedder: dict[str, Any]) -> AsyncIterator[Stage]:
    async with FakeUpstream() as upstream:
        says(upstream, "/v1/chat/completions", "As ever.")
        where = {"database_url": database_url, "upstream": upstream.url}
        settings = Settings(**where, **embedder, l1_entries=0)
        async with serving(settings) as service, Asker(service.base) as asker:
            await asker.new_cache(prefetch=True, ttlMillis=TTL * 1000)
            with psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as sql:
                sql.execute("set search_path = semcache, public")
                yield Stage(upstream, settings, asker, worker, sql)
