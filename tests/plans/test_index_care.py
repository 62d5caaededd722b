"""The worker's care for approximate indexes: built where wanted, replaced when outgrown, cleared when broken."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg import sql
from sessions import Session, key, open_session

from service.errors import SemcacheError
from service.store import index_care
from service.store.database import Database, Limits
from service.store.index_care import LargeScope, build, clear_invalid, large_scopes

LIMIT = 3


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[Database]:
    door = Database(database_url, Limits(pool_min=1, pool_max=1, timeout=30.0), role="semcache_worker")
    await door.open()
    yield door
    await door.close()


@pytest.fixture
def app(database_url: str) -> Iterator[Session]:
    session = open_session(database_url, "acme")
    yield session
    session.connection.close()


def fill(app: Session, first: int, last: int) -> None:
    scope_id = app.scope()
    for number in range(first, last + 1):
        app.store(str(number), scope_id=scope_id, exact_key=key(str(number)), vector=f"[{number},1,0]")


def indexes(app: Session) -> list[str]:
    return [
        row["relname"]
        for row in app.rows("select relname from pg_catalog.pg_class where relname like 'ann%%' order by relname")
    ]


async def test_a_small_scope_wants_none(app: Session, worker: Database) -> None:
    fill(app, 1, LIMIT)
    assert await large_scopes(worker, LIMIT) == []


async def test_a_large_one_gets_its_index_and_then_wants_no_more(app: Session, worker: Database) -> None:
    fill(app, 1, LIMIT + 1)
    (wanted,) = await large_scopes(worker, LIMIT)
    assert wanted == LargeScope(app.embedder_id, 3, app.scope(), LIMIT + 1, "ivfflat")
    await build(worker, wanted)
    assert indexes(app) == [wanted.name]
    assert app.rows("select ann_index, ann_rows from scope") == [{"ann_index": "ivfflat", "ann_rows": LIMIT + 1}]
    assert await large_scopes(worker, LIMIT) == []
    (health,) = app.rows("select index, kind, valid, rows_at_build, rows_now from index_health")
    assert health == {
        "index": wanted.name,
        "kind": "ivfflat",
        "valid": True,
        "rows_at_build": LIMIT + 1,
        "rows_now": LIMIT + 1,
    }


async def test_when_rows_have_doubled_a_new_one_takes_its_place(app: Session, worker: Database) -> None:
    fill(app, 1, 4)
    await build(worker, *await large_scopes(worker, LIMIT))
    fill(app, 5, 8)
    assert await large_scopes(worker, LIMIT) == []
    fill(app, 9, 9)
    (wanted,) = await large_scopes(worker, LIMIT)
    await build(worker, wanted)
    assert indexes(app) == [f"ann_{app.embedder_id}_{app.scope()}_ivfflat_9"]


async def test_another_kind_by_policy_takes_its_place(app: Session, worker: Database) -> None:
    fill(app, 1, 4)
    await build(worker, *await large_scopes(worker, LIMIT))
    app.rows("""update cache set policy = '{"index": "hnsw"}' where name = 'default' returning 1""")
    (wanted,) = await large_scopes(worker, LIMIT)
    await build(worker, wanted)
    assert indexes(app) == [f"ann_{app.embedder_id}_{app.scope()}_hnsw_4"]
    assert app.one("select ann_index from scope") == "hnsw"


async def test_the_index_of_a_worker_that_died_before_it_was_put_to_use_is_taken(
    app: Session, worker: Database
) -> None:
    fill(app, 1, 4)
    (wanted,) = await large_scopes(worker, LIMIT)
    await build(worker, wanted)
    app.rows("update scope set ann_index = null, ann_rows = null returning 1")
    await build(worker, *await large_scopes(worker, LIMIT))
    assert indexes(app) == [wanted.name]
    assert app.one("select ann_rows from scope") == 4


async def test_what_a_broken_build_left_is_cleared_and_lookups_went_on(
    app: Session, worker: Database, database_url: str
) -> None:
    fill(app, 1, 4)
    (wanted,) = await large_scopes(worker, LIMIT)
    await build(worker, wanted)
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "update pg_catalog.pg_index set indisvalid = false where indexrelid = %s::regclass",
            (f"semcache.{wanted.name}",),
        )
    assert await clear_invalid(worker) == [wanted.name]
    assert indexes(app) == []


async def test_after_a_failed_build_the_connection_is_the_workers_again(
    app: Session, worker: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(app, 1, 4)
    (wanted,) = await large_scopes(worker, LIMIT)
    broken = sql.SQL("create index {name} on semcache.{partition} (nowhere{dimensions}{lists}{scope_id})")
    monkeypatch.setitem(index_care.CREATE, "ivfflat", broken)
    with pytest.raises(SemcacheError):
        await build(worker, wanted)
    async with worker.connection() as connection:
        assert (await connection.one("select current_user as role"))["role"] == "semcache_worker"
        assert (await connection.one("select count(*) as rows from semcache.entry"))["rows"] == 4
