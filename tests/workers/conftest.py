"""The door as a worker uses it, and something to work on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from stored import Cached, cached

from service.store.database import Database, Limits


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
