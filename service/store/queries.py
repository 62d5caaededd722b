"""The named queries of `sql/queries`: read once, and the only place where text becomes a query."""

from __future__ import annotations

from functools import cache
from typing import LiteralString, cast

from psycopg import sql

from service.resources import sql_dir


@cache
def query(name: str) -> LiteralString:
    """The statement of `sql/queries/NAME.sql`, without its header of comments."""
    lines = (sql_dir() / "queries" / f"{name}.sql").read_text().splitlines()
    return cast("LiteralString", "\n".join(line for line in lines if not line.startswith("--")))  # type: ignore[redundant-cast]


@cache
def numbered(name: str, **numbers: int) -> sql.Composed:
    """A query whose `{name}` places take numbers as literals, where a parameter would hide an index."""
    return sql.SQL(query(name)).format(**{key: sql.Literal(number) for key, number in numbers.items()})


__all__ = ["numbered", "query"]
