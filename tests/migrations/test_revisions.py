"""The schema's life: up, down, offline, at once, and halfway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from processes import run, start
from psycopg.rows import scalar_row
from psycopg.types.json import Jsonb
from schema_text import bodies, describe
from sessions import feedback, open_session

from service.errors import Code, SemcacheError
from service.resources import migrations_dir
from service.store import migrate

BROKEN = """
from alembic import op

revision = "9999"
down_revision = "{head}"


def upgrade() -> None:
    op.execute("create table semcache.half_made (number integer)")
    op.execute("select 1 / 0")


def downgrade() -> None:
    op.execute("drop table semcache.half_made")
"""
LEFT_BEHIND = """
select c.relname::text
from pg_catalog.pg_class c
where c.relnamespace = 'semcache'::regnamespace
  and c.relkind <> 'i'
union all
select p.proname::text
from pg_catalog.pg_proc p
where p.pronamespace = 'semcache'::regnamespace
union all
select t.typname::text
from pg_catalog.pg_type t
where t.typnamespace = 'semcache'::regnamespace
  and t.typrelid = 0
  and t.typelem = 0
"""


def column(url: str, statement: str) -> list[str]:
    with psycopg.connect(url, row_factory=scalar_row) as connection:
        return connection.execute(statement).fetchall()


def head() -> str:
    config = Config()
    config.set_main_option("script_location", str(migrations_dir()))
    heads = ScriptDirectory.from_config(config).get_heads()
    assert len(heads) == 1, "two revisions were made on the same one: merge them"
    return heads[0]


def test_the_history_has_one_head() -> None:
    assert head()


def test_down_leaves_only_the_version_table_and_up_makes_all_again(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url)
    schema, texts = describe(empty_database_url), bodies(empty_database_url)
    register_and_store(empty_database_url)
    migrate.downgrade(empty_database_url, "base")
    assert column(empty_database_url, LEFT_BEHIND) == ["alembic_version"]
    assert migrate.state(empty_database_url) == migrate.State(None, head(), ())
    migrate.upgrade(empty_database_url)
    assert describe(empty_database_url) == schema
    assert bodies(empty_database_url) == texts
    assert not migrate.state(empty_database_url).behind


def test_down_to_the_first_schema_and_up_again_keeps_entries_and_feedback(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url)
    schema, texts = describe(empty_database_url), bodies(empty_database_url)
    app = open_session(empty_database_url, "acme")
    entry_id = app.store(features=Jsonb({"numbers": ["1"]}))["entry_id"]
    said = feedback(entry_id, "correct")
    app.call("record_feedback", tenant_id=app.tenant_id, cache_id=app.cache_id, **said)
    migrate.downgrade(empty_database_url, "0001")
    assert (app.count("entry"), app.count("embedding"), app.count("observation")) == (1, 1, 1)
    migrate.upgrade(empty_database_url)
    assert describe(empty_database_url) == schema
    assert bodies(empty_database_url) == texts
    assert app.entry(entry_id) is not None
    app.connection.close()


REVISIONS = [script.revision for script in ScriptDirectory(str(migrations_dir())).walk_revisions()][:-1]


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_revision_goes_down_and_up_on_data(empty_database_url: str, revision: str) -> None:
    migrate.upgrade(empty_database_url)
    schema = describe(empty_database_url)
    stored = fill(empty_database_url)
    migrate.downgrade(empty_database_url, revision)
    migrate.downgrade(empty_database_url, "-1")
    migrate.upgrade(empty_database_url, revision)
    migrate.upgrade(empty_database_url)
    assert describe(empty_database_url) == schema
    assert held(empty_database_url) == stored


def fill(url: str) -> list[str]:
    """Entries of two tenants with vectors, hits and verdicts; what `held` says of them."""
    for tenant in ("acme", "other"):
        app = open_session(url, tenant)
        for prompt in ("first", "second"):
            entry_id = app.store(prompt, features=Jsonb({"numbers": ["1"]}))["entry_id"]
            row = {"at": "2030-01-01T00:00:00Z", "cache_id": app.cache_id, "entry_id": str(entry_id), "served": True}
            said = {"outcome": "hit", "reason": "same_request", "latency_ms": 1, "tokens_saved": 0, "tokens_spent": 0}
            app.call("record_requests", tenant_id=app.tenant_id, requests=Jsonb([row | said]))
        verdict = {"verdict": "correct", "similarity": None, "prompt": "p", "prompt_verbatim": None}
        app.call("record_feedback", tenant_id=app.tenant_id, cache_id=app.cache_id, entry_id=entry_id, **verdict)
        app.connection.close()
    return held(url)


def held(url: str) -> list[str]:
    return column(
        url,
        """
        select concat_ws('|', e.prompt, o.payload, v.vector, u.hits, n.verdict, l.outcome)
        from semcache.entry e
        join semcache.output o using (output_id)
        join semcache.embedding v on v.entry_id = e.entry_id
        left join semcache.entry_usage u on u.entry_id = e.entry_id
        left join semcache.observation n on n.entry_id = e.entry_id
        left join semcache.request_log l on l.entry_id = e.entry_id
        order by 1, e.tenant_id
        """,
    )


def test_base_is_refused_while_there_are_entries_and_nothing_is_changed(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url)
    schema, stored = describe(empty_database_url), fill(empty_database_url)
    status, _, err = run("pgsemcache", "db", "downgrade", "base", "--database-url", empty_database_url)
    assert status == 1
    assert "say --drop-entries" in err
    status, out, err = run("alembic", "downgrade", "base", SEMCACHE_DATABASE_URL=empty_database_url)
    assert status != 0
    assert "-x drop=entries" in out + err
    migrate.upgrade(empty_database_url)
    assert (describe(empty_database_url), held(empty_database_url)) == (schema, stored)
    status, out, err = run(
        "alembic", "-x", "drop=entries", "downgrade", "base", SEMCACHE_DATABASE_URL=empty_database_url
    )
    assert (status, out + err) == (0, "")
    assert column(empty_database_url, LEFT_BEHIND) == ["alembic_version"]


def register_and_store(url: str) -> None:
    """What appears with the data: a partition."""
    with psycopg.connect(url) as connection:
        connection.execute("select semcache.register_embedder('local', 'tiny', 'r1', 3, 16, null)")


def test_the_models_are_the_schema(database_url: str) -> None:
    register_and_store(database_url)
    assert migrate.check(database_url) is None


def test_a_change_by_hand_is_found(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("alter table semcache.entry add column by_hand text")
    difference = migrate.check(database_url)
    assert difference is not None
    assert "by_hand" in difference


def test_check_changes_nothing_in_an_empty_database(empty_database_url: str) -> None:
    with pytest.raises(SemcacheError) as refused:
        migrate.check(empty_database_url)
    assert refused.value.code is Code.SCHEMA_BEHIND
    assert "`pgsemcache db upgrade`" in refused.value.detail
    assert column(empty_database_url, "select 1 from pg_catalog.pg_namespace where nspname = 'semcache'") == []


def statements(script: str) -> Iterator[str]:
    """One after the other, as psql sends them."""
    lines: list[str] = []
    is_quoted = False
    for line in script.splitlines():
        lines.append(line)
        is_quoted ^= line.count("$$") % 2 == 1
        if line.endswith(";") and not is_quoted:
            yield "\n".join(lines)
            lines = []


def test_offline_sql_makes_the_same_schema(empty_database_url: str, database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        for statement in statements(migrate.offline_sql()):
            connection.execute(statement.encode())
    assert describe(empty_database_url) == describe(database_url)
    assert bodies(empty_database_url) == bodies(database_url)
    assert not migrate.state(empty_database_url).behind
    migrate.require_current(empty_database_url)


def test_ten_upgrades_at_once_end_in_one_history(empty_database_url: str, database_url: str) -> None:
    upgrades = [start("pgsemcache", "db", "upgrade", "--database-url", empty_database_url) for _ in range(10)]
    ends = [(*upgrade.communicate(timeout=900), upgrade.returncode) for upgrade in upgrades]
    assert ends == [(f"revision {head()}, this release {head()}\n", "", 0)] * 10
    assert column(empty_database_url, "select version_num from semcache.alembic_version") == [head()]
    assert describe(empty_database_url) == describe(database_url)


def test_a_revision_that_fails_leaves_the_version_and_nothing_half_made(database_url: str, scripts: Path) -> None:
    (scripts / "versions" / "9999_broken.py").write_text(BROKEN.format(head=head()))
    schema = describe(database_url)
    with pytest.raises(SemcacheError, match="division by zero") as failed:
        migrate.upgrade(database_url)
    assert failed.value.code is Code.SCHEMA_BEHIND
    assert column(database_url, "select version_num from semcache.alembic_version") == [head()]
    assert describe(database_url) == schema


def test_a_later_release_may_have_gone_on(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("update semcache.alembic_version set version_num = 'later'")
    migrate.require_current(database_url)
    assert not migrate.state(database_url).known
    for refused in (migrate.upgrade, migrate.check, lambda url: migrate.downgrade(url, "0001")):
        with pytest.raises(SemcacheError, match="at revision later, which a later release made: upgrade"):
            refused(database_url)


def test_an_unknown_revision_is_told(database_url: str) -> None:
    with pytest.raises(SemcacheError, match="nowhere"):
        migrate.upgrade(database_url, "nowhere")


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("worker",)])
def test_a_schema_that_is_behind_is_refused(empty_database_url: str, command: tuple[str, ...]) -> None:
    status, out, err = run("pgsemcache", *command, "--database-url", empty_database_url)
    assert (status, out) == (1, "")
    assert "without the schema semcache" in err
    assert "`pgsemcache db upgrade`" in err


def test_sql_files_that_are_behind_are_refused(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("delete from semcache.sql_file where path = 'functions/store_entry.sql'")
    assert migrate.state(database_url).outdated == ("functions/store_entry.sql",)
    with pytest.raises(SemcacheError, match=r"1 SQL files are not as in this release.*db upgrade"):
        migrate.require_current(database_url)


def test_the_commands_work_from_anywhere(empty_database_url: str, tmp_path: Path) -> None:
    def db(*arguments: str) -> tuple[int, str, str]:
        return run("pgsemcache", "db", *arguments, folder=tmp_path, SEMCACHE_DATABASE_URL=empty_database_url)

    assert db("current") == (1, f"revision none, this release {head()}\n", "")
    assert db("upgrade") == (0, f"revision {head()}, this release {head()}\n", "")
    assert db("check") == (0, "no difference\n", "")
    status, said, _ = db("downgrade", "0017")
    assert (status, said.splitlines()[0]) == (0, f"revision 0017, this release {head()}")
    assert said.endswith("`pgsemcache db check` lists them\n")
    assert len(said.splitlines()) == 2
    status, said, _ = db("check")
    assert status == 1
    assert "not as in this release: functions/add_decayed.sql\n" in said
    assert db("downgrade", "base") == (0, f"revision none, this release {head()}\n", "")
    status, script, _ = db("sql")
    assert (status, script.rstrip()) == (0, migrate.offline_sql().rstrip())


def test_alembic_itself_works_in_a_checkout(empty_database_url: str, database_url: str) -> None:
    def alembic(*arguments: str) -> tuple[int, str]:
        status, out, err = run("alembic", *arguments, SEMCACHE_DATABASE_URL=empty_database_url)
        return status, out + err

    assert alembic("upgrade", "head") == (0, "")
    assert describe(empty_database_url) == describe(database_url)
    assert not migrate.state(empty_database_url).behind
    assert alembic("current") == (0, f"{head()} (head)\n")
    assert alembic("check") == (0, "No new upgrade operations detected.\n")
    assert alembic("upgrade", "head", "--sql") == (0, migrate.offline_sql())


def test_alembic_without_a_url_says_what_it_needs() -> None:
    status, _, err = run("alembic", "current")
    assert status == 1
    assert "SEMCACHE_DATABASE_URL" in err


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://someone:opensesame@127.0.0.1:1/nowhere", "Connection refused"),
        ("postgres//someone:opensesame@127.0.0.1:1/nowhere", "should look like postgresql://user:password@host"),
    ],
)
def test_a_database_that_cannot_be_reached_is_told_without_its_password(url: str, reason: str) -> None:
    for call in (migrate.upgrade, migrate.state, migrate.check):
        with pytest.raises(SemcacheError, match=reason) as failed:
            call(url)
        assert failed.value.code is Code.DATABASE_UNAVAILABLE
        assert "opensesame" not in str(failed.value)
