"""The schema as text, to compare databases with one another and with `tests/migrations/schema.txt`.

`make schema` writes that file anew, after a revision or a change in `sql/`.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from service.store import migrate
from service.store.embedded import EmbeddedPostgres

FOLDER = Path(__file__).parent / "migrations"
COMMITTED = FOLDER / "schema.txt"
BODIES = """
select p.oid::regprocedure::text, pg_get_functiondef(p.oid)
from pg_catalog.pg_proc p
where p.pronamespace = 'semcache'::regnamespace
union all
select v.viewname, v.definition
from pg_catalog.pg_views v
where v.schemaname = 'semcache'
"""


def describe(url: str) -> str:
    """Every object of the schema with its columns, constraints, indexes, policies, grants and comments, a line each."""
    return "".join(f"{line}\n" for (line,) in _rows(url, (FOLDER / "describe.sql").read_text()))


def bodies(url: str) -> dict[str, str]:
    """Functions and views, by name, with their text."""
    return dict(_rows(url, BODIES))


def _rows(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url) as connection:
        connection.execute("set search_path = semcache, public")
        return connection.execute(statement).fetchall()


if __name__ == "__main__":
    with TemporaryDirectory() as folder, EmbeddedPostgres(Path(folder), durable=False) as server:
        migrate.upgrade(server.url)
        COMMITTED.write_text(describe(server.url))
