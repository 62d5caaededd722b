"""What a database says of itself and of its traffic, as `pgsemcache doctor` judges it."""

from __future__ import annotations

from dataclasses import dataclass

from service.store.database import Database, Row
from service.store.queries import query


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """As `sql/queries/server_facts.sql` says: bytes, and seconds; clock: Unix time."""

    version: int
    version_text: str
    pgvector: str | None
    clock: float
    in_recovery: bool
    fsync: bool
    full_page_writes: bool
    autovacuum: bool
    max_connections: int
    connections: int
    shared_buffers: int
    vector_bytes: int
    replay_lag: float
    invalid_indexes: list[str]
    bloated_tables: list[str]


@dataclass(frozen=True, slots=True)
class TrafficFacts:
    """As `sql/queries/traffic_facts.sql` says, of the last hour. ended: seconds since a worker's task last ended."""

    requests: int
    p99_ms: dict[str, float]
    slowest_stage: str | None
    ended: float | None
    failing_tasks: list[str]
    overgrown_indexes: int


async def read_server(db: Database) -> ServerFacts:
    async with db.connection(bulk=True) as connection:
        return ServerFacts(**await connection.one(query("server_facts")))


async def read_traffic(db: Database) -> TrafficFacts:
    """`db` acts as the worker, which sees all tenants."""
    async with db.connection(bulk=True) as connection:
        return TrafficFacts(**await connection.one(query("traffic_facts")))


async def read_policies(db: Database) -> list[Row]:
    """Every cache, as `sql/queries/cache_policies.sql` names it. `db` acts as the worker."""
    async with db.connection(bulk=True) as connection:
        return await (await connection.execute(query("cache_policies"))).fetchall()


__all__ = ["ServerFacts", "TrafficFacts", "read_policies", "read_server", "read_traffic"]
