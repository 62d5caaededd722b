"""Alembic's environment: one run at a time, as the owner role, with timeouts, in the schema semcache."""

from __future__ import annotations

import os
import time
from typing import cast

import psycopg
from alembic import context
from alembic.autogenerate.rewriter import Rewriter
from alembic.operations import ops
from alembic.util.exc import CommandError
from sqlalchemy import Connection, create_engine, pool

from service.resources import sql_dir
from service.store.schema import metadata
from service.store.sql_files import apply_outdated, forget_applied, script, sql_files

SCHEMA = "semcache"
BOOTSTRAP = (sql_dir() / "bootstrap.sql").read_text()
TIMEOUTS = ("set lock_timeout = '4s'", "set statement_timeout = '60s'")
SEARCH_PATH = """
select set_config('search_path', format('semcache, %I, pg_temp', n.nspname), false)
from pg_catalog.pg_extension e
join pg_catalog.pg_namespace n on n.oid = e.extnamespace
where e.extname = 'vector'
""".strip()
ENTRIES = """
set role semcache_worker;
select exists (select from semcache.entry);
"""
LOCK = "select pg_try_advisory_lock(hashtextextended('semcache.migrate', 0))"
PAUSE = 0.1  # seconds between tries


without_comments = Rewriter()


@without_comments.rewrites(ops.DropTableCommentOp)
def _keep_table_comment(*_: object) -> list[ops.MigrateOperation]:
    """Comments stand in the DDL alone."""
    return []


@without_comments.rewrites(ops.AlterColumnOp)
def _keep_column_comment(_context: object, _revision: object, op: ops.AlterColumnOp) -> list[ops.MigrateOperation]:
    op.modify_comment = False
    return [op] if op.has_changes() else []


def is_ours(_object: object, name: str | None, kind: str, reflected: bool, _compare_to: object) -> bool:
    """Leave out what appears with the data: partitions and approximate indexes."""
    made_later = (
        reflected and name is not None and name.startswith(("embedding_", "ann_")) and kind in ("table", "index")
    )
    return not made_later or name == "embedding_scope"


def configure(**options: object) -> None:
    context.configure(
        target_metadata=metadata,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=lambda name, kind, _parents: kind != "schema" or name == SCHEMA,
        include_object=is_ours,
        compare_type=True,
        compare_server_default=False,
        transaction_per_migration=True,
        process_revision_directives=without_comments,
        **options,  # type: ignore[arg-type]
    )


def moves() -> bool:
    """Whether this run changes the revision: `current`, `check` and `revision` only read."""
    return "destination_rev" in context.get_context().opts


def goes_down() -> bool:
    return context.get_context().opts["fn"].__name__ == "downgrade"


def goes_to_head() -> bool:
    return context.get_context().opts["destination_rev"] in ("head", "heads", context.script.get_current_head())


def has_schema(driver: psycopg.Connection[tuple[str, bytes]]) -> bool:
    return driver.execute("select to_regclass('semcache.entry')").fetchone() != (None,)


def may_drop_entries(driver: psycopg.Connection[tuple[str, bytes]]) -> bool:
    """Whether nothing is stored, or the operator said so: `alembic -x drop=entries`, or --drop-entries."""
    said = context.get_x_argument(as_dictionary=True).get("drop") == "entries"
    if said or context.config.attributes.get("drop_entries"):
        return True
    if not has_schema(driver):
        return True
    cursor = driver.execute(ENTRIES)
    cursor.nextset()
    return cursor.fetchone() == (False,)


def wait_for_turn(driver: psycopg.Connection[tuple[str, bytes]]) -> None:
    """One run at a time. Whoever waits holds no snapshot, for which a concurrent index build would wait in turn."""
    while driver.execute(LOCK).fetchone() != (True,):
        driver.rollback()
        time.sleep(PAUSE)


def run_offline() -> None:
    """Print the SQL instead of running it."""
    configure(dialect_name="postgresql", literal_binds=True, dialect_opts={"paramstyle": "named"})
    context.static_output(BOOTSTRAP)
    context.static_output(f"{SEARCH_PATH};\n\nset role semcache_owner;")
    context.run_migrations()
    if goes_to_head():
        context.static_output("\n\n".join(("begin;", script(sql_files()), "commit;")))


def run_online(connection: Connection) -> None:
    may_drop = True

    def keep_entries(*, heads: set[str], **_: object) -> None:
        """In the transaction of each step, at its end."""
        if not heads and not may_drop:
            raise CommandError(
                "the database holds entries and base has no place for them: say --drop-entries "
                "(alembic: -x drop=entries) to lose them"
            )

    configure(connection=connection, on_version_apply=keep_entries)
    driver = cast("psycopg.Connection[tuple[str, bytes]]", connection.connection.driver_connection)
    if moves():
        wait_for_turn(driver)
        for setting in TIMEOUTS:
            driver.execute(setting)
        driver.execute(BOOTSTRAP)
        may_drop = may_drop_entries(driver)
    driver.execute(SEARCH_PATH)
    if moves():
        driver.execute("set role semcache_owner")
    driver.commit()
    if moves() and goes_down() and has_schema(driver):
        forget_applied(driver)  # in the transaction of the first step, which may be refused
    with context.begin_transaction():
        context.run_migrations()
    if moves() and goes_to_head():
        apply_outdated(driver)
    driver.commit()


if context.is_offline_mode():
    run_offline()
elif (given := context.config.attributes.get("connection")) is not None:
    run_online(given)
else:
    url = os.environ.get("SEMCACHE_DATABASE_URL", "")
    if not url:
        raise SystemExit("alembic needs SEMCACHE_DATABASE_URL=postgresql://…; `pgsemcache db` also takes --data-dir")
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=pool.NullPool)
    with engine.connect() as own:
        run_online(own)
