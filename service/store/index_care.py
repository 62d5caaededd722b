"""Approximate indexes: one partial index for each large scope and embedder, so that nothing can thin out its results.

Of all workers one at a time builds and drops: it holds an advisory lock on the connection that does, which lasts as
long as Postgres is at it, though the worker be killed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, cast
from uuid import UUID

from psycopg import sql

from service.store.database import Connection, Database
from service.store.queries import numbered, query

# A list of some hundred rows and ten probes read a thousandth to a hundredth of the rows and find all that is near
# (benchmarks/recall.py). More lists than a thousand would take gigabytes to build.
ROWS_PER_LIST = 100
MIN_LISTS, MAX_LISTS = 10, 1_000
LOCK = "hashtextextended('semcache.index_build', 0)"

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
REINDEX = sql.SQL("reindex index concurrently semcache.{}")
NOTE = """
with noted as (
    insert into semcache.vector_index (scope_id, embedder_id, tenant_id, kind, rows)
    select s.scope_id, %(embedder_id)s, s.tenant_id, %(kind)s, %(rows)s
    from semcache.scope s
    where s.scope_id = %(scope_id)s
    on conflict (scope_id, embedder_id) do update
    set kind = excluded.kind,
        rows = excluded.rows,
        built_at = now(),
        recall = null,
        checked_at = null
    returning embedder_id
)
update semcache.embedder m
set index_builds = m.index_builds + 1
from noted n
where m.embedder_id = n.embedder_id
"""


@dataclass(frozen=True, slots=True)
class LargeScope:
    """A scope that wants an index. rows: its vectors now; indexed: it has one, which is to be replaced."""

    embedder_id: int
    dimensions: int
    scope_id: int
    rows: int
    kind: Literal["ivfflat", "hnsw"]
    indexed: bool = False

    @property
    def prefix(self) -> str:
        return f"ann_{self.embedder_id}_{self.scope_id}_"

    @property
    def name(self) -> str:
        """Tells kind and size, so that a rebuild stands beside what it replaces."""
        return f"{self.prefix}{self.kind}_{self.rows}"


@dataclass(frozen=True, slots=True)
class Index:
    """An index that lookups may use."""

    scope_id: int
    embedder_id: int
    dimensions: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The lowest recall of all indexes, None where none was tried; how often they were built; dead rows by table."""

    lowest_recall: float | None
    builds: int
    dead_rows: dict[str, int]


async def large_scopes(db: Database, exact_scan_limit: int, *, recall_floor: float = 0.0) -> list[LargeScope]:
    """Scopes that want an index or a new one, largest first. `db` acts as the worker, here and in all that follows."""
    values = {"exact_scan_limit": exact_scan_limit, "recall_floor": recall_floor}
    async with db.connection(bulk=True) as connection:
        rows = await (await connection.execute(query("scopes_to_index"), values)).fetchall()
    return [LargeScope(**row) for row in rows]


async def build(db: Database, scope: LargeScope) -> bool:
    """Build the index without blocking writes, let lookups use it, and drop the one that it replaces.

    False where Postgres is building or dropping one already. A broken build leaves an invalid index behind, which
    `clear_invalid` drops.
    """
    async with _alone(db) as connection:
        if connection is None:
            return False
        before = [name for name, _ in await _indexes(connection) if name.startswith(scope.prefix)]
        await connection.execute("set maintenance_work_mem = '256MB'")
        if scope.name in before and scope.indexed:  # as many rows as when it was built, and yet it finds too little
            async with _as_owner(connection):
                await connection.execute(REINDEX.format(sql.Identifier(scope.name)))
        elif scope.name not in before:  # a worker that died after this statement has left it, whole
            async with _as_owner(connection):
                await connection.execute(_create(scope))
        await connection.execute(
            NOTE,
            {
                "embedder_id": scope.embedder_id,
                "kind": scope.kind,
                "rows": scope.rows,
                "scope_id": scope.scope_id,
            },
        )
        await _drop(connection, [name for name in before if name != scope.name])
    return True


async def clear_invalid(db: Database) -> list[str]:
    """Drop what broken builds left behind, and note which indexes are lost; returns the names of those dropped."""
    async with _alone(db) as connection:
        if connection is None:
            return []
        await connection.execute(query("forget_lost_indexes"))
        left = [name for name, valid in await _indexes(connection) if not valid]
        await _drop(connection, left)
    return left


async def drop_needless(db: Database, exact_scan_limit: int) -> list[str]:
    """Drop the indexes of deleted caches, and of scopes that have become small; returns the names."""
    async with _alone(db) as connection:
        if connection is None:
            return []
        cursor = await connection.execute(query("needless_indexes"), {"exact_scan_limit": exact_scan_limit})
        needless = [(row["scope_id"], row["embedder_id"]) for row in await cursor.fetchall()]
        for scope_id, embedder_id in needless:
            await connection.execute(
                "delete from semcache.vector_index where scope_id = %s and embedder_id = %s", (scope_id, embedder_id)
            )
        prefixes = tuple(f"ann_{embedder_id}_{scope_id}_" for scope_id, embedder_id in needless)
        names = [name for name, _ in await _indexes(connection) if prefixes and name.startswith(prefixes)]
        await _drop(connection, names)
    return names


async def indexes_to_try(db: Database, seconds: float) -> list[Index]:
    """Those whose recall was not tried for so many seconds."""
    async with db.connection(bulk=True) as connection:
        rows = await (await connection.execute(query("indexes_to_try"), {"seconds": seconds})).fetchall()
    return [Index(**row) for row in rows]


async def try_recall(db: Database, index: Index, *, after: UUID, sample: int, floor: float) -> float | None:
    """How often the index finds as near a neighbour as an exact scan, 0 to 1; and note it.

    Of `sample` stored vectors, those of entries after this id; None where none has a neighbour at `floor` or above.
    """
    statement = numbered(
        "recall_canary", dimensions=index.dimensions, embedder_id=index.embedder_id, scope_id=index.scope_id
    )
    async with db.connection(bulk=True) as connection:
        cursor = await connection.execute(statement, {"after": after, "sample": sample, "floor": floor})
        (row,) = await cursor.fetchall()
        await connection.execute(
            "update semcache.vector_index set recall = coalesce(%s, recall), checked_at = now() "
            "where scope_id = %s and embedder_id = %s",
            (row["recall"], index.scope_id, index.embedder_id),
        )
    return cast("float | None", row["recall"])


async def figures(db: Database) -> Figures:
    async with db.connection(bulk=True) as connection:
        return Figures(**await connection.one(query("care_figures")))


async def vacuum_needy(db: Database) -> list[str]:
    """Vacuum the tables of which much is dead, before Postgres' own vacuum comes to it; returns the names."""
    async with db.connection(bulk=True) as connection:
        names = [row["name"] for row in await (await connection.execute(query("tables_to_vacuum"))).fetchall()]
        async with _as_owner(connection):
            for name in names:
                await connection.execute(
                    sql.SQL("vacuum (analyze, skip_locked) semcache.{}").format(sql.Identifier(name))
                )
    return names


async def request_rate(db: Database) -> float:
    """Requests a second of all caches, just now."""
    async with db.connection(bulk=True) as connection:
        return float((await connection.one(query("request_rate")))["rate"])


@asynccontextmanager
async def _alone(db: Database) -> AsyncGenerator[Connection | None]:
    """The connection that may build and drop indexes; None while another has it."""
    async with db.connection(bulk=True) as connection:
        if not (await connection.one(f"select pg_try_advisory_lock({LOCK}) as alone"))["alone"]:
            yield None
            return
        try:
            yield connection
        finally:
            if not connection.closed:
                await connection.execute(f"select pg_advisory_unlock({LOCK})")


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


__all__ = [
    "Figures",
    "Index",
    "LargeScope",
    "build",
    "clear_invalid",
    "drop_needless",
    "figures",
    "indexes_to_try",
    "large_scopes",
    "request_rate",
    "try_recall",
    "vacuum_needy",
]
