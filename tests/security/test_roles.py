"""Who may do what: the roles that the service and its installer need, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from processes import run
from sqlalchemy import make_url
from stored import TENANT, VECTOR, Cached, cached, key, verdict_on

from service.errors import Code, SemcacheError
from service.store import caches, embedders, entries, leases, migrate, requests, tenants
from service.store.database import Database, Limits
from service.store.embedded import EmbeddedPostgres

FORBIDDEN = [
    "create table semcache.mine (number integer)",
    "create function semcache.mine() returns integer language sql return 1",
    "alter table semcache.entry add column mine text",
    "drop table semcache.entry",
    "truncate semcache.entry",
    "drop function semcache.flush_cache(bigint, bigint)",
    "create schema mine",
    "drop extension vector",
    "create role mine",
    "set role semcache_owner",
    "set role semcache_worker",
    "alter table semcache.entry disable row level security",
    "alter policy own_tenant on semcache.entry using (true)",
    "update semcache.alembic_version set version_num = 'mine'",
    "update semcache.sql_file set checksum = ''",
    "update semcache.request_log set reason = 'mine'",
    "update semcache.embedding set scope_id = 1",
    "update semcache.api_key set tenant_id = 1",
    "delete from semcache.audit_log",
    "delete from semcache.tenant",
    "insert into semcache.embedder (kind, name, revision, dimensions) values ('local', 'x', 'x', 1)",
    "select from semcache.embedding_1",
    "select semcache.purge_entries(1, interval '1 day')",
]


@pytest.fixture(scope="module")
def fresh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A superuser's URL of a server on which our roles were never made."""
    with EmbeddedPostgres(tmp_path_factory.mktemp("fresh"), durable=False) as server:
        yield server.url


def a_database(server: str, owner: str, *, rights: str = "", extension: bool = True) -> str:
    """The URL of a database with an owner who is no superuser."""
    with psycopg.connect(server, autocommit=True) as connection:
        for statement in (
            f"drop database if exists {owner}",
            f"drop role if exists {owner}",
            f"create role {owner} login password 'opensesame' {rights}",
            f"create database {owner} owner {owner}",
        ):
            connection.execute(statement)
    if extension:
        with psycopg.connect(server, dbname=owner, autocommit=True) as connection:
            connection.execute("create extension vector")
    return as_login(make_url(server).set(database=owner).render_as_string(hide_password=False), owner)


def as_login(url: str, name: str) -> str:
    return make_url(url).set(username=name, password="opensesame").render_as_string(hide_password=False)


def test_without_the_extension_the_mend_is_told(fresh_server: str) -> None:
    url = a_database(fresh_server, "bare", extension=False)
    with pytest.raises(SemcacheError, match=r'"vector" \(pgvector\).*as a superuser: create extension vector;'):
        migrate.upgrade(url)


def test_an_installer_who_may_not_make_roles_is_told_what_to_ask_for(fresh_server: str) -> None:
    with pytest.raises(SemcacheError, match="as a superuser: alter role plain createrole;"):
        migrate.upgrade(a_database(fresh_server, "plain"))


def test_an_installer_needs_no_superuser_but_to_make_roles(fresh_server: str) -> None:
    url = a_database(fresh_server, "installer", rights="createrole")
    migrate.upgrade(url)
    migrate.require_current(url)
    migrate.downgrade(url, "base")
    migrate.upgrade(url)
    assert migrate.check(url) is None
    with pytest.raises(SemcacheError, match=r"as a superuser: grant semcache_owner.* to second with admin option;"):
        migrate.upgrade(a_database(fresh_server, "second", rights="createrole"))


@pytest.fixture
def login(database_url: str) -> Iterator[str]:
    """The URL of a login that is a member of semcache_app and nothing else."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("drop role if exists semcache_test_login")
        connection.execute("create role semcache_test_login login password 'opensesame' in role semcache_app")
        yield as_login(database_url, "semcache_test_login")
        connection.execute("drop owned by semcache_test_login")
        connection.execute("drop role semcache_test_login")


async def test_membership_in_the_app_role_is_enough_for_the_service(login: str) -> None:
    migrate.require_current(login)
    db = Database(login, Limits(pool_min=1, pool_max=2))
    await db.open()
    try:
        await _everything_that_the_service_does(db)
    finally:
        await db.close()


def test_a_worker_without_its_role_ends_and_says_what_to_grant(login: str) -> None:
    status, _, err = run("pgsemcache", "worker", "--database-url", login)
    assert status == 1
    assert "as a superuser: grant semcache_worker to semcache_test_login;" in err
    assert "Traceback" not in err


def test_a_service_without_its_role_ends_and_says_what_to_grant(login: str, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("revoke semcache_app from semcache_test_login")
    status, _, err = run("pgsemcache", "serve", "--port", "0", "--database-url", login)
    assert status == 1
    assert "as a superuser: grant semcache_app to semcache_test_login;" in err
    assert "Traceback" not in err


async def _everything_that_the_service_does(db: Database) -> None:
    with_entry = await cached(db)
    cache, entry_id = with_entry.cache, with_entry.entry_id
    scope, found = await with_entry.find()
    assert scope is not None
    assert found is not None
    near = await entries.find_neighbours(
        db, cache, scope, embedder_id=with_entry.embedder_id, vector=VECTOR, attributes={}, neighbours=4
    )
    assert [row.entry_id for row in near] == [entry_id]
    await entries.nearest_anywhere(db, cache, embedder_id=with_entry.embedder_id, vector=VECTOR, limit=4)
    await entries.get(db, cache, entry_id)
    await entries.page(db, cache, after=None, limit=10)
    await entries.change(
        db, cache, entry_id, ttl_ms=60_000, clear_ttl=False, tags=["a"], pinned=True, quarantined=False
    )
    await entries.record_feedback(db, cache, verdict_on(entry_id))
    await entries.alias(db, cache, entry_id, exact_key=key("another"), prompt="another")
    await entries.scope_of(db, cache, entry_id)
    await requests.record(db, cache.tenant_id, [lookup_of(with_entry)])
    await caches.stats(db, cache, None)
    await caches.change_policy(db, cache, {"ttlMillis": 1000})
    await caches.page(db, cache.tenant_id, after=None, limit=10)
    await embedders.register(
        db, kind="local", name="tiny", revision="r2", dimensions=3, max_tokens=16, probe=None, same=lambda *_: False
    )
    holder = with_entry.holder
    head = (await leases.renew(db, holder, 1.0, None)).head
    await leases.pending(db, head, head)
    await leases.lagging(db, holder, head)
    await leases.end(db, holder)
    await entries.delete(db, cache, entry_id)
    await entries.delete_many(db, cache, attributes={}, tags=["a"], model=None, older_than=None, dry_run=False)
    await caches.flush(db, cache)
    await caches.delete(db, cache)
    tenant = await tenants.ensure(db, TENANT)
    number, _ = await tenants.create_key(db, tenant, "sk-key")
    assert await tenants.find_by_key(db, "sk-key") == tenant
    assert await tenants.any_key(db)
    assert [key.api_key_id for key in await tenants.list_keys(db)] == [number]
    await tenants.revoke_key(db, number)


def lookup_of(with_entry: Cached) -> dict[str, object]:
    return {
        "at": "2030-01-01T00:00:00Z",
        "cache_id": with_entry.cache.cache_id,
        "scope_key": with_entry.scope_key.hex(),
        "entry_id": str(with_entry.entry_id),
        "outcome": "hit",
        "reason": "same_request",
        "latency_ms": 0.5,
        "tokens_saved": 0,
        "tokens_spent": 0,
        "served": True,
    }


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_app_role_may_not(login: str, database_url: str, statement: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("select semcache.register_embedder('local', 'tiny', 'r1', 3, 16, null)")
    with psycopg.connect(login, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)
        connection.execute("set role semcache_app")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)


def test_the_app_role_cannot_make_the_extension(login: str, empty_database_url: str) -> None:
    bare = as_login(empty_database_url, make_url(login).username or "")
    with psycopg.connect(bare) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("create extension vector")


def test_a_temporary_table_cannot_stand_in_for_ours(login: str) -> None:
    """register_embedder runs as the owner: what it names must not be looked for among the caller's own objects."""
    with psycopg.connect(login, autocommit=True) as connection:
        connection.execute("create temporary table embedder (like semcache.embedder)")
        connection.execute("select semcache.register_embedder('local', 'tiny', 'r1', 3, 16, null)")
        assert connection.execute("select count(*) from pg_temp.embedder").fetchone() == (0,)
        assert connection.execute("select count(*) from semcache.embedder").fetchone() == (1,)


def test_nobody_may_execute_without_being_granted(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        open_to_all = connection.execute(
            """
            select p.proname
            from pg_catalog.pg_proc p
            cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
            where p.pronamespace = 'semcache'::regnamespace
              and a.grantee = 0
            """
        ).fetchall()
    assert open_to_all == []


async def test_what_the_service_runs_runs_as_the_app_role(database_url: str) -> None:
    db = Database(database_url, Limits(pool_min=1, pool_max=1))
    await db.open()
    try:
        async with db.connection() as connection:
            assert (await connection.one("select current_user as role"))["role"] == "semcache_app"
            with pytest.raises(SemcacheError) as refused:
                async with db.connection() as another:
                    await another.execute("drop table semcache.entry")
        assert refused.value.code is Code.DATABASE_UNAVAILABLE  # one connection, and it is in use
    finally:
        await db.close()
