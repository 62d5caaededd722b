"""The door as a worker uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from service.store.database import Database, Limits


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[Database]:
    door = Database(database_url, Limits(pool_min=1, pool_max=4, timeout=30.0), role="semcache_worker")
    await door.open()
    yield door
    await door.close()
