"""The files of `sql/functions` and `sql/views`: applied whenever their checksum is another than in the database."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import psycopg
from psycopg import sql
from psycopg.abc import Query

from service.resources import sql_dir

FOLDERS = ("functions", "views")
VIEWS = "views/"
NOTE = sql.SQL(
    "insert into semcache.sql_file (path, checksum) values ({}, decode({}, 'hex'))\n"
    "on conflict (path) do update set checksum = excluded.checksum, applied_at = now();"
)


@dataclass(frozen=True, slots=True)
class SqlFile:
    """A function or view. path: below the folder sql, as `views/overview.sql`."""

    path: str
    text: str

    @property
    def checksum(self) -> bytes:
        return hashlib.sha256(self.text.encode()).digest()

    @property
    def is_view(self) -> bool:
        return self.path.startswith(VIEWS)


def sql_files() -> list[SqlFile]:
    """All files in the order of their application."""
    root = sql_dir()
    paths = [path for folder in FOLDERS for path in sorted((root / folder).glob("*.sql"))]
    return [SqlFile(path.relative_to(root).as_posix(), path.read_text()) for path in paths]


def outdated(applied: Mapping[str, bytes]) -> list[SqlFile]:
    """The files that are not as they were applied; `applied` maps paths to checksums."""
    return [file for file in sql_files() if applied.get(file.path) != file.checksum]


def script(files: list[SqlFile]) -> str:
    """SQL that applies these files and notes it."""
    return "\n".join(part for file in files for part in (file.text, _note(file), ""))


def apply_outdated(connection: psycopg.Connection[tuple[str, bytes]]) -> None:
    """Apply what changed, in the caller's transaction. Views are made anew together: they may use one another."""
    applied = dict(connection.execute("select path, checksum from semcache.sql_file").fetchall())
    changed = outdated(applied)
    if any(file.is_view for file in changed):
        _drop_views(connection, [Path(path).stem for path in applied if path.startswith(VIEWS)])
        changed = [file for file in sql_files() if file.is_view or file in changed]
    if changed:
        connection.execute(cast("Query", script(changed)))


def forget_applied(connection: psycopg.Connection[tuple[str, bytes]]) -> None:
    """Drop the views and let the next upgrade apply all files anew: a downgrade takes away what they use."""
    paths = connection.execute("select path from semcache.sql_file").fetchall()
    _drop_views(connection, [Path(path).stem for (path, *_) in paths if path.startswith(VIEWS)])
    connection.execute("delete from semcache.sql_file")


def _drop_views(connection: psycopg.Connection[tuple[str, bytes]], names: list[str]) -> None:
    """Drop our views and no other: where somebody built on one, Postgres refuses and names it."""
    if names:
        views = sql.SQL(", ").join(sql.Identifier("semcache", name) for name in names)
        connection.execute(sql.SQL("drop view if exists {}").format(views))
        connection.execute("delete from semcache.sql_file where starts_with(path, %s)", (VIEWS,))


def _note(file: SqlFile) -> str:
    return NOTE.format(sql.Literal(file.path), sql.Literal(file.checksum.hex())).as_string(None)


__all__ = ["SqlFile", "apply_outdated", "forget_applied", "outdated", "script", "sql_files"]
