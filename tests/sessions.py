"""Calling our SQL functions directly, as the service or a worker would, and waiting for one another's locks."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

SETUP = """
select
    semcache.ensure_tenant(%(tenant)s) as tenant_id,
    semcache.register_embedder('local', 'tiny', 'r1', 3, 16, null) as embedder_id
"""


def key(text: str) -> bytes:
    """A key as the service makes them: SHA-256."""
    return hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True)
class Session:
    """A session of one tenant. Each statement is a transaction of its own, unless `holding`."""

    connection: psycopg.Connection[dict[str, Any]]
    tenant_id: int
    cache_id: int
    embedder_id: int

    def rows(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        return self.connection.execute(statement, values).fetchall()

    def one(self, statement: str, **values: Any) -> Any:
        """The only value of the only row."""
        (row,) = self.rows(statement, **values)
        (value,) = row.values()
        return value

    def call(self, function: str, **arguments: Any) -> Any:
        """What `semcache.FUNCTION` returns for these arguments, which are named without their p_: a value or a row."""
        names = sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(f"p_{name}"), sql.Placeholder(name)) for name in arguments
        )
        call = sql.SQL("select * from semcache.{}({})").format(sql.Identifier(function), names)
        (row,) = self.connection.execute(call, arguments).fetchall()
        return next(iter(row.values())) if len(row) == 1 else row

    def cache(self, name: str = "other", policy: dict[str, Any] | None = None) -> int:
        return int(self.call("create_cache", tenant_id=self.tenant_id, name=name, policy=Jsonb(policy or {})))

    def scope(self, name: str = "scope", *, cache_id: int | None = None, model: str = "m") -> int:
        return int(
            self.call(
                "ensure_scope",
                tenant_id=self.tenant_id,
                cache_id=cache_id or self.cache_id,
                scope_key=key(name),
                canonical_version=1,
                parts=Jsonb({"system": "none"}),
                model_key=key(model),
                model=Jsonb({"name": model}),
                config_key=key("{}"),
                config="{}",
            )
        )

    def store(self, prompt: str = "first", **changes: Any) -> Any:
        """Store an entry; a `scope_id` or any other argument of store_entry may be given."""
        arguments: dict[str, Any] = {
            "tenant_id": self.tenant_id,
            "cache_id": self.cache_id,
            "exact_key": key(prompt),
            "attributes_key": key(""),
            "prompt": prompt,
            "prompt_verbatim": None,
            "attributes": Jsonb({}),
            "tags": [],
            "provenance": "client",
            "ttl_ms": None,
            "payload": '{"format": 1}',
            "prompt_tokens": None,
            "completion_tokens": None,
            "cost_ms": None,
            "embedder_id": self.embedder_id,
            "vector": "[1,0,0]",
            "variants": 1,
            "answer_key": None,
            "features_version": "1",
            "features": Jsonb({"content": ["first"]}),
        }
        arguments |= changes
        if "changes" not in arguments:
            arguments["changes"] = self.changes(arguments["cache_id"])
        if "scope_id" not in arguments:
            arguments["scope_id"] = self.scope(cache_id=arguments["cache_id"])
        return self.call("store_entry", **arguments)

    def changes(self, cache_id: int | None = None) -> int:
        return int(self.one("select changes from semcache.cache where cache_id = %(id)s", id=cache_id or self.cache_id))

    def entry(self, entry_id: UUID) -> dict[str, Any] | None:
        rows = self.rows("select * from semcache.entry where entry_id = %(id)s", id=entry_id)
        return rows[0] if rows else None

    def count(self, table: str) -> int:
        return int(self.one(f"select count(*) from semcache.{table}"))

    @contextmanager
    def holding(self) -> Generator[None]:
        """One transaction, so that its locks are held to the end of the block."""
        with self.connection.transaction():
            yield

    def waits(self, other: Session) -> None:
        """Return when the other session waits for a lock."""
        deadline = time.monotonic() + 10
        while not self.one("select pg_blocking_pids(%(pid)s)", pid=other.connection.info.backend_pid):
            assert time.monotonic() < deadline, "it does not wait"


def open_session(url: str, tenant: str, role: str = "semcache_app") -> Session:
    """Open a session in this role for a tenant, which is made where it is not there yet."""
    connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)
    connection.execute("set statement_timeout = '20s'")
    connection.execute("set search_path = semcache, public")
    connection.execute("set role semcache_app")
    made = connection.execute(SETUP, {"tenant": tenant}).fetchone()
    assert made is not None
    connection.execute("select set_config('semcache.tenant_id', %s, false)", (str(made["tenant_id"]),))
    found = connection.execute(
        "select cache_id from semcache.cache where name = 'default' and tenant_id = %(tenant_id)s", made
    ).fetchone()
    assert found is not None
    connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
    return Session(connection, made["tenant_id"], found["cache_id"], made["embedder_id"])


__all__ = ["Session", "key", "open_session"]


def observed(entry_id: UUID, **changes: Any) -> dict[str, Any]:
    """An observation as the service sends it."""
    return {
        "entry_id": str(entry_id),
        "request_id": str(uuid4()),
        "similarity": 0.9,
        "verdict": "correct",
        "source": "shadow",
        "rank": 0,
        "signals": [0.9, 0.1],
        "signals_version": 1,
        "answer_key": key("answer").hex(),
        "probability": None,
        "served": False,
        "policy": "calibrated",
        "inclusion": 0.5,
        "prompt": None,
        "prompt_verbatim": None,
    } | changes


def feedback(entry_id: UUID, verdict: str, **changes: Any) -> dict[str, Any]:
    """The arguments of record_feedback for a verdict on an entry."""
    row = observed(entry_id, verdict=verdict, source="feedback", served=True, inclusion=None, **changes)
    return {"entry_id": entry_id, "verdict": verdict, "observation": Jsonb(row)}
