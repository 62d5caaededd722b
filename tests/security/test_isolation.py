"""Nothing crosses tenants, also where they share a connection, a table and a partition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from stored import Cached, cached

from service.errors import SemcacheError
from service.store import entries
from service.store.database import Database, Limits

UNFORCED = """
select c.relname
from pg_catalog.pg_class c
where c.relnamespace = 'semcache'::regnamespace
  and c.relkind in ('r', 'p')
  and exists (select from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id')
  and c.relname not in ('api_key', 'tenant')
  and not (c.relrowsecurity and c.relforcerowsecurity)
"""


@pytest.fixture
async def one_backend(database_url: str) -> AsyncIterator[Database]:
    """A door with a single connection, so that everybody shares it."""
    db = Database(database_url, Limits(pool_min=1, pool_max=1))
    await db.open()
    yield db
    await db.close()


def test_every_table_of_a_tenant_has_forced_row_security(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("select semcache.register_embedder('local', 'tiny', 'r1', 3, 16, null)")
        assert connection.execute(UNFORCED).fetchall() == []


async def test_one_backend_serves_two_tenants_in_turn(one_backend: Database) -> None:
    ours, theirs = await cached(one_backend, "ours"), await cached(one_backend, "theirs")
    for _ in range(2):
        for mine, other in ((ours, theirs), (theirs, ours)):
            _, found = await mine.find()
            assert found is not None
            assert found.entry_id == mine.entry_id
            assert await _prompts(one_backend, mine) == 1
            assert await entries.page(one_backend, other.cache, after=None, limit=10) != []
            with pytest.raises(SemcacheError):
                await entries.get(one_backend, mine.cache, other.entry_id)


async def test_a_lie_about_the_tenant_finds_nothing(one_backend: Database) -> None:
    """Row security holds where a statement's own condition names the wrong tenant."""
    ours, theirs = await cached(one_backend, "ours"), await cached(one_backend, "theirs")
    async with one_backend.tenant(ours.cache.tenant_id) as connection:
        row = await connection.one(
            "select count(*) as rows from semcache.entry where tenant_id = %s", (theirs.cache.tenant_id,)
        )
    assert row["rows"] == 0


async def test_a_call_that_is_cancelled_while_it_switches_leaves_no_doubt(
    one_backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = await cached(one_backend, "ours"), await cached(one_backend, "theirs")
    async with one_backend.tenant(ours.cache.tenant_id) as connection:
        execute = connection.execute

    async def execute_and_be_cancelled(*arguments: Any, **options: Any) -> None:
        await execute(*arguments, **options)
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(connection, "execute", execute_and_be_cancelled)
        with pytest.raises(asyncio.CancelledError):
            await theirs.find()
    _, found = await ours.find()
    assert found is not None


async def _prompts(db: Database, of: Cached) -> int:
    async with db.tenant(of.cache.tenant_id) as connection:
        row = await connection.one("select count(*) as rows from semcache.entry")
    return int(row["rows"])


async def test_a_tenant_cannot_store_for_another(one_backend: Database) -> None:
    ours, theirs = await cached(one_backend, "ours"), await cached(one_backend, "theirs")
    async with one_backend.tenant(ours.cache.tenant_id) as connection:
        with pytest.raises(psycopg.DatabaseError) as refused:
            await connection.execute(
                "select semcache.flush_cache(%s, %s)", (theirs.cache.tenant_id, theirs.cache.cache_id)
            )
    assert refused.value.sqlstate == "SC404"
    assert (await theirs.find())[1] is not None
