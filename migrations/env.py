"""Alembic's environment: one run at a time, as the owner role, with timeouts, in the schema semcache."""

from __future__ import annotations

import os
from pathlib import Path

from alembic import context
from alembic.autogenerate.rewriter import Rewriter
from alembic.operations import ops
from sqlalchemy import Connection, create_engine, pool, text

from service.store.schema import metadata

SCHEMA = "semcache"
BOOTSTRAP = Path(str(context.config.attributes.get("sql_dir", Path(__file__).parent.parent / "sql"))) / "bootstrap.sql"
TIMEOUTS = ("set lock_timeout = '4s'", "set statement_timeout = '60s'")
LOCK = "select pg_advisory_lock(hashtextextended('semcache.migrate', 0))"


without_comments = Rewriter()


@without_comments.rewrites(ops.DropTableCommentOp)
def _keep_table_comment(*_: object) -> list[ops.MigrateOperation]:
    """Comments stand in the DDL alone."""
    return []


@without_comments.rewrites(ops.AlterColumnOp)
def _keep_column_comment(_context: object, _revision: object, op: ops.AlterColumnOp) -> list[ops.MigrateOperation]:
    op.modify_comment = False
    return [op] if op.has_changes() else []


def escape_colons(sql: str) -> str:
    """SQL as a text() that binds nothing."""
    return sql.replace(":", r"\:")


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


def run_offline() -> None:
    """Print the SQL instead of running it."""
    configure(dialect_name="postgresql", literal_binds=True)
    context.execute(text(escape_colons(BOOTSTRAP.read_text())))
    context.execute(text("set role semcache_owner"))
    with context.begin_transaction():
        context.run_migrations()


def run_online(connection: Connection) -> None:
    connection.execute(text(LOCK))
    for setting in TIMEOUTS:
        connection.execute(text(setting))
    connection.execute(text(escape_colons(BOOTSTRAP.read_text())))
    connection.execute(text("set role semcache_owner"))
    connection.commit()
    configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()


if context.is_offline_mode():
    run_offline()
elif (given := context.config.attributes.get("connection")) is not None:
    run_online(given)
else:
    url = os.environ.get("SEMCACHE_DATABASE_URL", "")
    if not url:
        raise SystemExit("alembic needs SEMCACHE_DATABASE_URL=postgresql://…; `pgsemcache db` also takes --data-dir")
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=pool.NullPool)
    with engine.connect() as own:
        run_online(own)
