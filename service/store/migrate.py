"""The schema's life: Alembic revisions once, the files of `sql/functions` and `sql/views` whenever they changed."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from psycopg.abc import Query
from sqlalchemy import Connection, create_engine, make_url, pool, text

from service.errors import Code, SemcacheError
from service.resources import migrations_dir, sql_dir

FOLDERS = ("functions", "views")
UPGRADE_HINT = "run `pgsemcache db upgrade` with the same --data-dir or --database-url"

logger = logging.getLogger("semcache.migrate")


@dataclass(frozen=True, slots=True)
class State:
    """Where a database stands: its revision (None: no schema), and the SQL files that are not as in this release."""

    revision: str | None
    head: str
    outdated: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether this release knows the revision; a later release may have gone on."""
        return self.revision is None or self.revision in _revisions()

    @property
    def behind(self) -> bool:
        return self.known and (self.revision != self.head or bool(self.outdated))


def upgrade(url: str, revision: str = "head") -> None:
    """Bring a database to a revision and its functions and views to this release. Concurrent calls queue.

    Raises: SemcacheError(SCHEMA_BEHIND) where the database refuses, with its own reason and mend.
    """
    with _connection(url) as connection:
        command.upgrade(_config(connection), revision)
        if revision == "head":
            _apply_files(connection)


def downgrade(url: str, revision: str) -> None:
    """Take a database back to an earlier revision, or to `base`."""
    with _connection(url) as connection:
        command.downgrade(_config(connection), revision)


def check(url: str) -> str | None:
    """What differs between the models and the database, as text; None where nothing does."""
    out = io.StringIO()
    with _connection(url) as connection:
        config = _config(connection)
        config.print_stdout = lambda line, *args: out.write(f"{line % args if args else line}\n")  # type: ignore[method-assign]
        try:
            command.check(config)
        except Exception as error:
            return str(error)
    return None


def offline_sql(revision: str = "head") -> str:
    """The SQL that would bring an empty database to a revision, functions and views included."""
    out = io.StringIO()
    config = _config(None)
    config.output_buffer = out
    command.upgrade(config, revision, sql=True)
    files = [path.read_text() for _, path in _sql_files()]
    return "\n".join([out.getvalue(), "begin;", *files, "commit;", ""])


def state(url: str) -> State:
    """Where a database stands. Reads only; needs no right but to connect and to use the schema."""
    head = ScriptDirectory.from_config(_config(None)).get_current_head()
    with psycopg.connect(url, connect_timeout=5) as connection:
        found = connection.execute("select to_regclass('semcache.alembic_version')").fetchone()
        if found is None or found[0] is None:
            return State(None, str(head), ())
        row = connection.execute("select version_num from semcache.alembic_version").fetchone()
        applied = (
            dict(connection.execute("select path, checksum from semcache.sql_file").fetchall()) if row else {}
        )
    outdated = tuple(name for name, path in _sql_files() if applied.get(name) != _checksum(path))
    return State(row[0] if row else None, str(head), outdated)


def require_current(url: str) -> None:
    """Refuse a database whose schema is behind this release.

    Raises: SemcacheError(SCHEMA_BEHIND), naming the command that mends it.
    """
    found = state(url)
    if found.behind:
        at = f"at revision {found.revision}" if found.revision else "without the schema semcache"
        files = f", {len(found.outdated)} SQL files are not as in this release" if found.outdated else ""
        raise SemcacheError(
            Code.SCHEMA_BEHIND, f"the database is {at}{files}; this release needs {found.head}: {UPGRADE_HINT}"
        )
    if not found.known:
        logger.warning("the database is at revision %s, which a later release made", found.revision)


def _config(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations_dir()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["sql_dir"] = sql_dir()
    if connection is not None:
        config.attributes["connection"] = connection
    return config


def _revisions() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config(None)).walk_revisions()}


@contextmanager
def _connection(url: str) -> Iterator[Connection]:
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=pool.NullPool)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _sql_files() -> list[tuple[str, Path]]:
    root = sql_dir()
    return [(f"{folder}/{p.name}", p) for folder in FOLDERS for p in sorted((root / folder).glob("*.sql"))]


def _checksum(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _apply_files(connection: Connection) -> None:
    """Apply what changed, in one transaction. Views are made anew together: they may use one another."""
    applied = {row.path: bytes(row.checksum) for row in connection.execute(text("select path, checksum from semcache.sql_file"))}
    changed = [name for name, path in _sql_files() if applied.get(name) != _checksum(path)]
    views_changed = any(name.startswith("views/") for name in changed)
    driver = cast("psycopg.Connection[object]", connection.connection.driver_connection)
    if views_changed:
        _drop_views(connection)
    for name, path in _sql_files():
        if name in changed or (views_changed and name.startswith("views/")):
            driver.execute(cast("Query", path.read_text()))
            connection.execute(
                text(
                    "insert into semcache.sql_file (path, checksum) values (:path, :checksum) "
                    "on conflict (path) do update set checksum = excluded.checksum, applied_at = now()"
                ),
                {"path": name, "checksum": _checksum(path)},
            )
    connection.commit()


def _drop_views(connection: Connection) -> None:
    names = connection.execute(text("select viewname from pg_catalog.pg_views where schemaname = 'semcache'"))
    for name in names.scalars().all():
        connection.execute(text(f'drop view semcache."{name}" cascade'))


__all__ = ["State", "check", "downgrade", "offline_sql", "require_current", "state", "upgrade"]
