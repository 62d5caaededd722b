"""Scopes with many entries, made in SQL, and the plans of what the service asks there."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from pgvector.psycopg import register_vector
from psycopg import AsyncClientCursor, sql

from service.store.database import Connection, Database
from service.store.rows import CacheId, CacheRow, EmbedderId, ScopeId, ScopeRow, TenantId

DIMENSIONS = 64
Vector = NDArray[np.float32]

# Texts of people crowd around themes: vectors are drawn around centres, as far from one another as theirs are.
SEED = """
with cache as (
    insert into cache (tenant_id, name) values (%(tenant_id)s, 'seeded') returning cache_id
),
model as (
    insert into model (tenant_id, model_key, name) values (%(tenant_id)s, sha256('m'), 'm') returning model_id
),
config as (
    insert into sampling_config (tenant_id, config_key, config) values (%(tenant_id)s, sha256('{}'), '{}')
    returning sampling_config_id
),
scope as (
    insert into scope (tenant_id, cache_id, scope_key, model_id, sampling_config_id, canonical_version, parts)
    select %(tenant_id)s, cache_id, sha256('scope'), model_id, sampling_config_id, 1, '{}'
    from cache, model, config
    returning scope_id, cache_id
),
output as (
    insert into output (tenant_id, payload, bytes)
    select %(tenant_id)s, json_build_object('format', 1, 'text', 'answer ' || n), 13
    from generate_series(1, %(rows)s) n
    returning output_id, substr(payload ->> 'text', 8)::int as n
),
centre as materialized (
    select c, (
        select array_agg(random_normal()) from generate_series(1, %(dimensions)s) where c is not null
    )::vector as vector
    from generate_series(0, %(rows)s / 100) c
),
entry as (
    insert into entry (
        tenant_id, cache_id, scope_id, output_id, epoch, exact_key, attributes_key, prompt, provenance
    )
    select
        %(tenant_id)s, s.cache_id, s.scope_id, o.output_id, 0, sha256(o.n::text::bytea), sha256(''),
        'prompt ' || o.n, 'upstream'
    from scope s, output o
    returning entry_id, scope_id, substr(prompt, 8)::int as n
)
insert into embedding (tenant_id, embedder_id, scope_id, entry_id, vector)
select %(tenant_id)s, %(embedder_id)s, e.scope_id, e.entry_id, l2_normalize(c.vector + (
    select array_agg(0.7 * random_normal()) from generate_series(1, %(dimensions)s) where e.n is not null
)::vector)::halfvec
from entry e
join centre c on c.c = e.n %% (%(rows)s / 100 + 1)
"""


@dataclass(frozen=True)
class Scope:
    """A scope with its cache, as the service knows them."""

    cache: CacheRow
    row: ScopeRow
    embedder_id: EmbedderId

    def indexed(self, *, yes: bool) -> Scope:
        return replace(self, row=ScopeRow(self.row.scope_id, (self.embedder_id,) if yes else ()))


@dataclass(frozen=True)
class Seeded:
    """A database with three scopes in one partition, each of a tenant of its own."""

    url: str
    huge: Scope
    middling: Scope
    tiny: Scope


def seed(url: str) -> Seeded:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set search_path = semcache, public")
        connection.execute("set session_replication_role = replica")  # the rows refer to one another rightly
        connection.execute("select setseed(0.5)")
        row = connection.execute(
            "select register_embedder('local', 'seeded', 'r1', %s, 16, null)", (DIMENSIONS,)
        ).fetchone()
        assert row is not None
        scopes = [_scope(connection, name, rows, row[0]) for name, rows in _SIZES.items()]
        connection.execute("vacuum analyze")
    return Seeded(url, *scopes)


_SIZES = {"huge": 50_000, "middling": 3_000, "tiny": 10}


def _scope(connection: psycopg.Connection[Any], tenant: str, rows: int, embedder_id: int) -> Scope:
    tenant_id = connection.execute("select ensure_tenant(%s)", (tenant,)).fetchone()[0]  # type: ignore[index]
    connection.execute("select set_config('semcache.tenant_id', %s, false)", (str(tenant_id),))
    values = {"tenant_id": tenant_id, "rows": rows, "embedder_id": embedder_id, "dimensions": DIMENSIONS}
    connection.execute(SEED, values)
    found = connection.execute("select scope_id, cache_id from scope where tenant_id = %s", (tenant_id,)).fetchone()
    assert found is not None
    now = datetime.now(UTC)
    cache = CacheRow(TenantId(tenant_id), CacheId(found[1]), "seeded", {}, 0, 0, now, now)
    return Scope(cache, ScopeRow(ScopeId(found[0])), EmbedderId(embedder_id))


def queries(url: str, scope: Scope, count: int, *, noise: float = 0.03) -> Vector:
    """Unit vectors each near a stored one of the scope, as a paraphrase would be; shape (count, DIMENSIONS)."""
    with psycopg.connect(url) as connection:
        register_vector(connection)
        rows = connection.execute(
            "select vector from semcache.embedding where scope_id = %s order by md5(entry_id::text) limit %s",
            (scope.row.scope_id, count),
        ).fetchall()
    stored = np.array([row[0].to_numpy() for row in rows], dtype=np.float32)
    moved: Vector = stored + np.random.default_rng(7).normal(0, noise, stored.shape).astype(np.float32)
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    return moved


@dataclass(frozen=True)
class Asked:
    """A statement as the service sent it."""

    statement: str
    values: Mapping[str, Any]


@contextmanager
def listening() -> Generator[list[Asked]]:
    """Collects the statements with named values that go through the door in the block.

    A service that other tests share may run in another thread, and is not heard.
    """
    heard: list[Asked] = []
    execute, here = Connection.execute, threading.get_ident()

    async def note(self: Connection, statement: Any, values: Any = None, **options: Any) -> Any:
        if isinstance(values, Mapping) and threading.get_ident() == here:
            text = statement if isinstance(statement, str) else statement.as_string(self)
            heard.append(Asked(text, values))
        return await execute(self, statement, values, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Connection, "execute", note)
        yield heard


@dataclass(frozen=True)
class Plan:
    """What Postgres did, from EXPLAIN ANALYZE."""

    nodes: list[dict[str, Any]]

    def touched(self, relation: str) -> int:
        """Rows of a table, or of its partitions, that were read and kept or thrown away."""
        return round(sum(_rows(node) for node in self.nodes if node.get("Relation Name", "").startswith(relation)))

    def indexes(self, relation: str) -> set[str]:
        """Names of the indexes through which a table, or its partitions, were read."""
        return {node["Index Name"] for node in self.nodes if node.get("Index Name", "").startswith(relation)}

    @property
    def scanned(self) -> set[str]:
        """Tables read from one end to the other."""
        return {node["Relation Name"] for node in self.nodes if node["Node Type"] == "Seq Scan"}


async def explain(db: Database, scope: Scope, asked: Asked, *, generic: bool) -> Plan:
    """What Postgres does for a statement of the service, planned for its values or, as it may be later, for any."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", asked.statement)))
    prepared = re.sub(r"%\((\w+)\)s", lambda m: f"${names.index(m[1]) + 1}", asked.statement).replace("%%", "%")
    places = sql.SQL(", ").join([sql.Placeholder()] * len(names))
    call = sql.SQL("explain (analyze, format json) execute asked({})").format(places)
    async with db.tenant(scope.cache.tenant_id) as connection:
        cursor = AsyncClientCursor(connection)
        await cursor.execute("set plan_cache_mode = %s", ["force_generic_plan" if generic else "force_custom_plan"])
        await cursor.execute(sql.SQL(f"prepare asked as {prepared}"))
        await cursor.execute(call, [asked.values[name] for name in names])
        row = await cursor.fetchone()
        await cursor.execute("deallocate asked")
        await cursor.execute("reset plan_cache_mode")
    assert row is not None
    return Plan(list(_nodes(row["QUERY PLAN"][0]["Plan"])))


def _rows(node: dict[str, Any]) -> float:
    kept, filtered = node["Actual Rows"], node.get("Rows Removed by Filter", 0)
    return float(node["Actual Loops"] * (kept + filtered + node.get("Rows Removed by Index Recheck", 0)))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


__all__ = ["DIMENSIONS", "Asked", "Plan", "Scope", "Seeded", "Vector", "explain", "listening", "queries", "seed"]
