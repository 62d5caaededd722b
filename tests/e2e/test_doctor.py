"""`pgsemcache doctor` on real installations, well and not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import psycopg
from sqlalchemy import make_url
from typer.testing import CliRunner

from service.cli import app
from service.store import migrate, tasks
from service.store.database import Database, Limits
from service.store.embedded import EmbeddedPostgres
from tests.fakes.upstream import FakeUpstream, Reply


def examined(*arguments: str, **variables: str) -> tuple[int, str]:
    environment = {f"SEMCACHE_{name.upper()}": value for name, value in variables.items()}
    done = CliRunner().invoke(app, ["doctor", *arguments], env=environment)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def work_once(url: str) -> None:
    async def run() -> None:
        db = Database(url, Limits(pool_min=1, pool_max=1), role="semcache_worker")
        await db.open()
        holder = uuid4()
        await tasks.claim(db, "purge", holder, 60)
        await tasks.end(db, "purge", holder, outcome="done", detail={}, interval=60)
        await db.close()

    asyncio.run(run())


def test_an_installation_that_is_well_passes(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path) as server:
        migrate.upgrade(server.url)
        work_once(server.url)
        status, said = examined("--data-dir", str(tmp_path))
    assert status == 0, said
    assert "FAIL" not in said
    for line in (
        "ok    schema:",
        "ok    postgres:",
        "ok    embedder: all-MiniLM-L6-v2",
        "ok    worker:",
        "ok    keys:",
    ):
        assert line in said


def test_what_was_changed_by_hand_and_what_nobody_does_is_told_with_its_mend(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("alter table semcache.entry add column by_hand text")
    status, said = examined("--database-url", database_url, host="0.0.0.0")
    assert status == 1
    assert "FAIL  durability:" in said, "the tests' server has fsync off"
    assert "FAIL  schema: changed by hand" in said
    assert "FAIL  keys: there is none, and 0.0.0.0 is reachable from elsewhere" in said
    assert "warn  worker: never ran\n      -> run `pgsemcache worker`" in said


def test_another_release_is_told_with_its_mend(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("update semcache.alembic_version set version_num = '0017'")
    status, said = examined("--database-url", database_url)
    assert status == 1
    assert "FAIL  schema: at 0017, this release needs" in said
    assert "`pgsemcache db upgrade`" in said
    with psycopg.connect(database_url) as connection:
        connection.execute("update semcache.alembic_version set version_num = 'later'")
    _, said = examined("--database-url", database_url)
    assert "warn  schema: at later, which a later release made\n      -> upgrade this installation" in said


def test_a_database_without_a_schema_or_without_an_answer_is_told(empty_database_url: str) -> None:
    status, said = examined("--database-url", empty_database_url)
    assert status == 1
    assert "FAIL  schema: at none" in said
    assert "`pgsemcache db upgrade`" in said
    status, said = examined("--database-url", "postgresql://someone:opensesame@127.0.0.1:1/nowhere")
    assert status == 1
    assert "FAIL  database: the database cannot be reached" in said
    assert "opensesame" not in said


def test_a_login_of_the_service_sees_all_but_the_traffic(database_url: str) -> None:
    name = f"login_{uuid4().hex[:8]}"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"create role {name} login in role semcache_app")
        try:
            url = make_url(database_url).set(username=name).render_as_string(hide_password=False)
            _, said = examined("--database-url", url)
        finally:
            connection.execute(f"drop role {name}")
    assert "ok    schema:" in said
    assert "warn  traffic: was not looked at" in said


def test_nothing_is_made_where_nothing_is(tmp_path: Path) -> None:
    status, said = examined("--data-dir", str(tmp_path / "data"))
    assert status == 0
    assert "warn  database: there is none" in said
    assert not (tmp_path / "data").exists()


async def test_model_servers_show_what_they_serve(tmp_path: Path) -> None:
    async with FakeUpstream() as upstream:
        upstream.on("/v1/models", Reply(json={"data": [{"id": "small-chat"}]}))
        upstream.on("/metrics", Reply(chunks=[b"vllm:kv_cache_usage_perc 0.83\n"]))
        where = ["--data-dir", str(tmp_path / "data")]
        _, said = await asyncio.to_thread(examined, *where, upstream=upstream.url)
        assert "warn  model small-chat:" in said
        assert "warn  engine of small-chat: uses 83% of its key-value cache" in said
        assert "new weights under this name would not be noticed" in said
        declared = '{"small-chat": {"revision": "v1"}, "large-chat": {"revision": "v1"}}'
        status, said = await asyncio.to_thread(examined, *where, upstream=upstream.url, models=declared)
        assert "ok    model small-chat:" in said
        assert "FAIL  model large-chat: its server does not list it" in said
        assert status == 1
    _, said = await asyncio.to_thread(examined, *where, upstream=upstream.url)
    assert "FAIL  model servers:" in said
