"""Requests that are kept to be asked again, and what was asked ahead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from uuid import UUID

from service.store.database import Database
from service.store.queries import query
from service.store.rows import CacheRow, TenantId
from service.store.text import to_columns

Endpoint = Literal["chat", "completions", "responses", "embeddings"]

KEEP_REQUEST = """
select semcache.keep_request(
    %(tenant_id)s, %(cache_id)s, %(request_key)s, %(exact_key)s, %(endpoint)s, %(model)s, %(model_key)s,
    %(body)s::json, %(tags)s, %(ttl_ms)s, %(tokens)s, %(cost_ms)s::real
)
"""
CLAIM_PREFETCH = """
select prefetch_id, tenant_id, tenant, cache, endpoint, model, body::text as body, tags, ttl_ms, why
from semcache.claim_prefetch(
    %(models)s, %(model_keys)s, %(measure)s, %(horizon)s, %(soon)s, %(gain)s, %(budget)s, %(tenant_budget)s
)
"""


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """A request whose answer was stored. `body` is its JSON text; ttl_ms was asked for, None is the policy's."""

    request_key: bytes
    exact_key: bytes
    endpoint: Endpoint
    model: str
    model_key: bytes
    body: str
    tags: list[str]
    ttl_ms: int | None
    tokens: int
    cost_ms: float | None


@dataclass(frozen=True, slots=True)
class Repeat:
    """A kept request that is to be asked again."""

    tenant_id: TenantId
    tenant: str
    cache: str
    endpoint: Endpoint
    model: str
    body: str
    tags: list[str]
    ttl_ms: int | None


@dataclass(frozen=True, slots=True)
class Claim(Repeat):
    """A request that is now to be asked ahead, `why` in one word."""

    prefetch_id: int
    why: str


@dataclass(frozen=True, slots=True)
class Terms:
    """How candidates are chosen. gain: what an answer that is there is worth, in times what it costs to ask for it;
    budget: tokens in an hour, of all tenants and of each."""

    measure: str
    horizon: timedelta
    soon: timedelta
    gain: float
    budget: int
    tenant_budget: int


@dataclass(frozen=True, slots=True)
class Totals:
    """How often each outcome of the view prefetch_log came in the last month, and tokens spent and wasted."""

    outcomes: dict[str, int]
    tokens: int
    tokens_wasted: int


async def keep(db: Database, cache: CacheRow, kept: KeptRequest) -> None:
    """Keep a request so that it can be asked again."""
    values = {name: getattr(kept, name) for name in KeptRequest.__slots__}
    values |= {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "model": to_columns(kept.model)[0]}
    async with db.tenant(cache.tenant_id) as connection:
        await connection.execute(KEEP_REQUEST, values, prepare=True)


async def confirm(db: Database, cache: CacheRow, request_key: bytes, exact_key: bytes, model_key: bytes) -> None:
    """Note that the answer to a kept request under this revision of its model is there."""
    values = {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "model_key": model_key}
    async with db.tenant(cache.tenant_id) as connection:
        await connection.execute(
            query("confirm_request"), values | {"request_key": request_key, "exact_key": exact_key}, prepare=True
        )


async def kept(db: Database, cache: CacheRow, measure: str, *, answered: bool) -> list[int]:
    """The nodes of the requests that a cache keeps, the most central first; or of those whose answer lives unpinned."""
    values = {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "measure": measure, "answered": answered}
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        return [row["node_id"] for row in await (await connection.execute(query("kept_requests"), values)).fetchall()]


async def repeat(db: Database, cache: CacheRow, node_id: int) -> Repeat | None:
    """None where the request is kept no more."""
    async with db.tenant(cache.tenant_id) as connection:
        values = {"tenant_id": cache.tenant_id, "node_id": node_id}
        row = await (await connection.execute(query("kept_request"), values, prepare=True)).fetchone()
    return Repeat(**row) if row else None


async def models(db: Database) -> list[str]:
    """Names of the models that kept requests are for. `db` acts as the worker, here and below."""
    async with db.connection() as connection:
        return [row["model"] for row in await (await connection.execute(query("prefetch_models"))).fetchall()]


async def claim(db: Database, open_models: Mapping[str, bytes], terms: Terms) -> Claim | None:
    """The request that is most worth asking now, noted as being asked. open_models: name and key of the revision.

    None where none is worth it, or the budget is spent.
    """
    values = {name: getattr(terms, name) for name in Terms.__slots__}
    values |= {"models": list(open_models), "model_keys": list(open_models.values())}
    async with db.connection(bulk=True) as connection:
        row = await (await connection.execute(CLAIM_PREFETCH, values)).fetchone()
    return Claim(**row) if row else None


async def end(
    db: Database, prefetch_id: int, *, outcome: str, entry_id: UUID | None, tokens: int, cost_ms: float | None
) -> None:
    """Note what came of a claim."""
    async with db.connection() as connection:
        await connection.execute(
            query("end_prefetch"),
            {
                "prefetch_id": prefetch_id,
                "outcome": outcome,
                "entry_id": entry_id,
                "tokens": tokens,
                "cost_ms": cost_ms,
            },
        )


async def totals(db: Database) -> Totals:
    async with db.connection(bulk=True) as connection:
        return Totals(**await connection.one(query("prefetch_totals")))


__all__ = [
    "Claim",
    "Endpoint",
    "KeptRequest",
    "Repeat",
    "Terms",
    "Totals",
    "claim",
    "confirm",
    "end",
    "keep",
    "kept",
    "models",
    "repeat",
    "totals",
]
