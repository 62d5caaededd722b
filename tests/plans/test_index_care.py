"""The worker's care for approximate indexes: built where wanted, replaced when outgrown, cleared when broken."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import LiteralString, cast

import numpy as np
import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb
from sessions import Session, key, open_session

from service.errors import SemcacheError
from service.settings import Settings
from service.store import caches, entries, index_care
from service.store.database import Database, Limits
from service.store.index_care import (
    LargeScope,
    build,
    clear_invalid,
    drop_needless,
    large_scopes,
    vacuum_needy,
)
from service.store.rows import EmbedderId, TenantId
from workers import index_care as task

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


async def reachable(app: Session, worker: Database) -> int:
    """How many entries a lookup finds."""
    cache = await caches.find(worker, TenantId(app.tenant_id), "default")
    scope, _ = await entries.find_exact(worker, cache, scope_key=key("scope"), exact_key=key("none"), attributes={})
    assert scope
    vector = np.array([1, 0, 0], np.float32)
    return len(
        await entries.find_neighbours(
            worker,
            cache,
            scope,
            embedder_id=EmbedderId(app.embedder_id),
            vector=vector,
            attributes={},
            neighbours=10,
        )
    )


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
    assert app.rows("select kind, rows from vector_index") == [{"kind": "ivfflat", "rows": LIMIT + 1}]
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
    noted = await index_care.figures(worker)
    assert (noted.builds, noted.lowest_recall) == (2, None)
    assert {"entry", "embedding"} <= noted.dead_rows.keys()


async def test_another_kind_by_policy_takes_its_place(app: Session, worker: Database) -> None:
    fill(app, 1, 4)
    await build(worker, *await large_scopes(worker, LIMIT))
    app.rows("""update cache set policy = '{"index": "hnsw"}' where name = 'default' returning 1""")
    (wanted,) = await large_scopes(worker, LIMIT)
    await build(worker, wanted)
    assert indexes(app) == [f"ann_{app.embedder_id}_{app.scope()}_hnsw_4"]
    assert app.one("select kind from vector_index") == "hnsw"


async def test_the_index_of_a_worker_that_died_before_it_was_put_to_use_is_taken(
    app: Session, worker: Database
) -> None:
    fill(app, 1, 4)
    (wanted,) = await large_scopes(worker, LIMIT)
    await build(worker, wanted)
    async with worker.connection() as connection:
        await connection.execute("delete from semcache.vector_index")
    await build(worker, *await large_scopes(worker, LIMIT))
    assert indexes(app) == [wanted.name]
    assert app.one("select rows from vector_index") == 4


@pytest.mark.parametrize(
    ("lose", "dropped"),
    [
        ("update pg_catalog.pg_index set indisvalid = false where indexrelid = 'semcache.{}'::regclass", True),
        ("drop index semcache.{}", False),
    ],
)
async def test_an_index_that_broke_or_went_is_built_anew(
    app: Session, worker: Database, database_url: str, lose: LiteralString, *, dropped: bool
) -> None:
    fill(app, 1, 4)
    (wanted,) = await large_scopes(worker, LIMIT)
    await build(worker, wanted)
    with psycopg.connect(database_url) as connection:
        connection.execute(sql.SQL(lose).format(sql.SQL(cast("LiteralString", wanted.name))))
    assert await reachable(app, worker) == 4
    assert await clear_invalid(worker) == ([wanted.name] if dropped else [])
    assert indexes(app) == []
    assert await reachable(app, worker) == 4
    assert await large_scopes(worker, LIMIT) == [wanted]
    await build(worker, wanted)
    assert indexes(app) == [wanted.name]
    assert await clear_invalid(worker) == []
    assert app.count("vector_index") == 1


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


async def test_two_generations_of_vectors_have_an_index_each(app: Session, worker: Database) -> None:
    fill(app, 1, 4)
    await build(worker, *await large_scopes(worker, LIMIT))
    app.rows("select semcache.register_embedder('local', 'other', 'r1', 3, 16, null)")
    app.rows(
        "insert into embedding (tenant_id, embedder_id, scope_id, entry_id, vector) "
        "select tenant_id, embedder_id + 1, scope_id, entry_id, vector from embedding returning 1"
    )
    (wanted,) = await large_scopes(worker, LIMIT)
    assert wanted.embedder_id == app.embedder_id + 1
    await build(worker, wanted)
    assert await large_scopes(worker, LIMIT) == []
    assert len(indexes(app)) == 2
    assert app.rows("select embedder_id from index_health order by 1") == [
        {"embedder_id": app.embedder_id},
        {"embedder_id": app.embedder_id + 1},
    ]


async def test_while_postgres_builds_for_a_killed_worker_nobody_else_does(
    app: Session, worker: Database, database_url: str
) -> None:
    fill(app, 1, 4)
    (wanted,) = await large_scopes(worker, LIMIT)
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute(f"select pg_advisory_lock({index_care.LOCK})")
        assert not await build(worker, wanted)
        assert await clear_invalid(worker) == await drop_needless(worker, LIMIT) == []
    assert indexes(app) == []
    while not await build(worker, wanted):
        pass
    assert indexes(app) == [wanted.name]


async def test_an_index_that_finds_too_little_is_built_anew(app: Session, worker: Database) -> None:
    fill(app, 1, 4)
    await build(worker, *await large_scopes(worker, LIMIT))
    app_as_worker = "update semcache.vector_index set recall = 0.5, built_at = now() - %s * interval '1 minute'"
    async with worker.connection() as connection:
        await connection.execute(app_as_worker, (30,))
    assert await large_scopes(worker, LIMIT, recall_floor=0.9) == [], "not twice within an hour"
    async with worker.connection() as connection:
        await connection.execute(app_as_worker, (90,))
    assert await large_scopes(worker, LIMIT, recall_floor=0.4) == []
    (wanted,) = await large_scopes(worker, LIMIT, recall_floor=0.9)
    assert wanted.indexed
    before = oid(app, wanted)
    assert await build(worker, wanted)
    assert indexes(app) == [wanted.name]
    assert oid(app, wanted) != before
    assert await large_scopes(worker, LIMIT, recall_floor=0.9) == []


def oid(app: Session, wanted: LargeScope) -> int:
    return int(app.one("select %(name)s::regclass::oid", name=f"semcache.{wanted.name}"))


async def test_indexes_of_deleted_caches_and_of_scopes_that_shrank_go(app: Session, worker: Database) -> None:
    cache_id = app.cache("doomed")
    doomed = app.scope(cache_id=cache_id)
    for number in range(8):
        app.store(str(number), cache_id=cache_id, scope_id=doomed, exact_key=key(str(number)))
    fill(app, 1, 8)
    for wanted in await large_scopes(worker, LIMIT):
        await build(worker, wanted)
    assert await drop_needless(worker, LIMIT) == []
    app.call("delete_cache", tenant_id=app.tenant_id, cache_id=cache_id)
    assert await drop_needless(worker, LIMIT) == [f"ann_{app.embedder_id}_{doomed}_ivfflat_8"]
    app.rows("delete from entry where prompt > '1' returning 1")
    assert await drop_needless(worker, LIMIT) == [f"ann_{app.embedder_id}_{app.scope()}_ivfflat_8"]
    assert indexes(app) == []
    assert app.count("vector_index") == 0
    assert (await index_care.figures(worker)).builds == 2


async def test_under_load_only_what_is_very_large_is_built(app: Session, worker: Database) -> None:
    settings = Settings(exact_scan_limit=LIMIT, index_max_rate=0)
    fill(app, 1, LIMIT + 1)
    lookup = {"at": app.one("select now()::text"), "cache_id": app.cache_id, "outcome": "miss", "reason": "no_entry"}
    app.call(
        "record_requests",
        tenant_id=app.tenant_id,
        requests=Jsonb([lookup | {"latency_ms": 1, "tokens_saved": 0, "tokens_spent": 0}]),
    )
    cared = await task.run_once(worker, settings)
    assert (cared.built, cared.waiting) == ([], 1)
    fill(app, LIMIT + 2, 4 * LIMIT + 1)
    cared = await task.run_once(worker, settings)
    assert (len(cared.built), cared.waiting) == (1, 0)


async def test_what_is_mostly_dead_is_vacuumed(app: Session, worker: Database) -> None:
    app.rows(
        "insert into cache_change select %(cache_id)s, %(tenant_id)s, 0, 0, 0 from generate_series(1, 5000) "
        "returning 1",
        cache_id=app.cache_id,
        tenant_id=app.tenant_id,
    )
    async with worker.connection() as connection:
        await connection.execute("select semcache.fold_changes()")
        await connection.execute("select pg_stat_force_next_flush()")
    app.rows("select pg_stat_force_next_flush()")
    assert "cache_change" in await vacuum_needy(worker)
    assert "cache_change" not in await vacuum_needy(worker)
