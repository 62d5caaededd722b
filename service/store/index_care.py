"""Approximate indexes: one partial index for each large scope, so that no other scope can thin out its results."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from psycopg import sql

from service.store.database import Connection, Database
from service.store.queries import query

# A list of some hundred rows and ten probes read a thousandth to a hundredth of the rows and find all that is near
# (benchmarks/recall.py). More lists than a thousand would take gigabytes to build.
ROWS_PER_LIST = 100
MIN_LISTS, MAX_LISTS = 10, 1_000

CREATE: dict[str, sql.SQL] = {
    "ivfflat": sql.SQL(
        "create index concurrently {name} on semcache.{partition} "
        "using ivfflat ((vector::halfvec({dimensions})) halfvec_ip_ops) "
        "with (lists = {lists}) where scope_id = {scope_id}"
    ),
    "hnsw": sql.SQL(
        "create index concurrently {name} on semcache.{partition} "
        "using hnsw ((vector::halfvec({dimensions})) halfvec_ip_ops) where scope_id = {scope_id}"
    ),
}


@dataclass(frozen=True, slots=True)
class LargeScope:
    """A scope that wants an index. rows: its vectors now."""

    embedder_id: int
    dimensions: int
    scope_id: int
    rows: int
    kind: Literal["ivfflat", "hnsw"]

    @property
    def prefix(self) -> str:
        return f"ann_{self.embedder_id}_{self.scope_id}_"

    @property
    def name(self) -> str:
        """Tells kind and size, so that a rebuild stands beside what it replaces."""
        return f"{self.prefix}{self.kind}_{self.rows}"


async def large_scopes(db: Database, exact_scan_limit: int) -> list[LargeScope]:
    """Scopes that want an index or a new one, largest first. `db` acts as the worker."""
    async with db.connection(bulk=True) as connection:
        rows = await (
            await connection.execute(query("scopes_to_index"), {"exact_scan_limit": exact_scan_limit})
        ).fetchall()
    return [LargeScope(**row) for row in rows]


async def build(db: Database, scope: LargeScope) -> None:
    """Build the index without blocking writes, let lookups use it, and drop the one that it replaces.

    `db` acts as the worker, which may take the owner's role. A broken build leaves an invalid index
    behind, which `clear_invalid` drops.
    """
    async with db.connection(bulk=True) as connection:
        before = [name for name, _ in await _indexes(connection) if name.startswith(scope.prefix)]
        await connection.execute("set maintenance_work_mem = '256MB'")
        if scope.name not in before:  # a worker that died after this statement has left it, whole
            async with _as_owner(connection):
                await connection.execute(_create(scope))
        await connection.execute(
            "update semcache.scope set ann_index = %s, ann_rows = %s where scope_id = %s",
            (scope.kind, scope.rows, scope.scope_id),
        )
        await _drop(connection, [name for name in before if name != scope.name])


async def clear_invalid(db: Database) -> list[str]:
    """Drop what broken builds left behind; returns the names."""
    async with db.connection(bulk=True) as connection:
        left = [name for name, valid in await _indexes(connection) if not valid]
        await _drop(connection, left)
    return left


async def _indexes(connection: Connection) -> list[tuple[str, bool]]:
    rows = await (await connection.execute(query("ann_indexes"))).fetchall()
    return [(row["name"], row["valid"]) for row in rows]


async def _drop(connection: Connection, names: list[str]) -> None:
    async with _as_owner(connection):
        for name in names:
            await connection.execute(
                sql.SQL("drop index concurrently if exists semcache.{}").format(sql.Identifier(name))
            )


@asynccontextmanager
async def _as_owner(connection: Connection) -> AsyncGenerator[None]:
    """Only an owner may make and drop indexes. The connection is the worker's again, also when that fails."""
    await connection.execute("set role semcache_owner")
    try:
        yield
    finally:
        if not connection.closed:
            await connection.execute("set role semcache_worker")


def _create(scope: LargeScope) -> sql.Composed:
    return CREATE[scope.kind].format(
        name=sql.Identifier(scope.name),
        partition=sql.Identifier(f"embedding_{scope.embedder_id}"),
        dimensions=sql.Literal(scope.dimensions),
        lists=sql.Literal(min(MAX_LISTS, max(MIN_LISTS, scope.rows // ROWS_PER_LIST))),
        scope_id=sql.Literal(scope.scope_id),
    )


__all__ = ["LargeScope", "build", "clear_invalid", "large_scopes"]
