"""A database of some size: a huge scope, a middling one and a tiny tenant, in one partition."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import psycopg
import pytest
from seeded import Scope, Seeded, seed
from sqlalchemy import make_url

from service.store.database import Database, Limits
from service.store.index_care import build, large_scopes


@pytest.fixture(scope="package")
def seeded(server_url: str, template: str) -> Iterator[Seeded]:
    """Scopes of 50,000, 3,000 and 10 vectors. Tests leave the rows as they are."""
    name = f"plans_{uuid4().hex}"
    url = make_url(server_url).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"create database {name} template {template}")
        yield seed(url)
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture
async def db(seeded: Seeded) -> AsyncIterator[Database]:
    """The service's door."""
    door = Database(seeded.url, Limits(pool_min=1, pool_max=1, timeout=30.0))
    await door.open()
    yield door
    await door.close()


@pytest.fixture
async def worker(seeded: Seeded) -> AsyncIterator[Database]:
    """A worker's door."""
    door = Database(seeded.url, Limits(pool_min=1, pool_max=1, timeout=30.0), role="semcache_worker")
    await door.open()
    yield door
    await door.close()


@pytest.fixture(params=["ivfflat", "hnsw"])
async def indexed(request: pytest.FixtureRequest, seeded: Seeded, worker: Database) -> Scope:
    """A scope with an index that the worker built: IVFFlat over the huge one, HNSW over the middling one."""
    scope = {"ivfflat": seeded.huge, "hnsw": seeded.middling}[request.param]
    with psycopg.connect(seeded.url, autocommit=True) as connection:
        connection.execute(
            "update semcache.cache set policy = %s where cache_id = %s",
            (f'{{"index": "{request.param}"}}', scope.cache.cache_id),
        )
    for wanted in await large_scopes(worker, 2_000, recall_floor=0.0):
        if wanted.scope_id == scope.row.scope_id:
            await build(worker, wanted)
    return scope.indexed(yes=True)
