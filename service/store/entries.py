"""Entries: found, stored, listed, changed and deleted. One statement each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, LiteralString, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from service.errors import Code, SemcacheError
from service.policy.guards.features import FEATURES_VERSION, Features
from service.policy.verified import Fit
from service.store.database import Database, Row
from service.store.observations import NewObservation
from service.store.queries import numbered, query
from service.store.rows import (
    CacheRow,
    EmbedderId,
    EntryRow,
    Found,
    InvalidationId,
    Labels,
    NewEntry,
    ScopeId,
    ScopeRow,
    Stored,
)
from service.store.text import from_columns, to_columns

Vector = NDArray[np.float32]

ENSURE_SCOPE = """
select semcache.ensure_scope(
    %(tenant_id)s, %(cache_id)s, %(scope_key)s, %(canonical_version)s::smallint, %(parts)s,
    %(model_key)s, %(model)s, %(config_key)s, %(config)s::json
) as scope_id
"""
STORE_ENTRY = """
select entry_id, invalidation_id
from semcache.store_entry(
    %(tenant_id)s, %(cache_id)s, %(changes)s, %(scope_id)s, %(exact_key)s, %(attributes_key)s,
    %(prompt)s, %(prompt_verbatim)s::json, %(attributes)s, %(tags)s, %(provenance)s, %(ttl_ms)s, %(payload)s::json,
    %(prompt_tokens)s, %(completion_tokens)s, %(cost_ms)s::real, %(embedder_id)s, %(vector)s::halfvec,
    %(variants)s, %(answer_key)s, %(features_version)s::smallint, %(features)s
)
"""


async def find_exact(
    db: Database,
    cache: CacheRow,
    *,
    scope_key: bytes,
    exact_key: bytes,
    attributes: dict[str, str],
    max_age: float | None = None,
    client_answers: bool = True,
    answers: int = 1,
    min_ttl: float = 0.0,
) -> tuple[ScopeRow | None, list[Found]]:
    """The scope of this key, and in it the newest living answers to this request that have these attributes.

    max_age: how many seconds old they may be. min_ttl: how many they must have left; below 0 for how many an expired
    one counts as living.
    """
    async with db.tenant(cache.tenant_id) as connection:
        cursor = await connection.execute(
            query("find_exact"),
            {
                "tenant_id": cache.tenant_id,
                "cache_id": cache.cache_id,
                "scope_key": scope_key,
                "exact_key": exact_key,
                "attributes": Jsonb(attributes),
                "max_age": max_age,
                "client_answers": client_answers,
                "answers": answers,
                "min_ttl": min_ttl,
            },
            prepare=True,
        )
        rows = await cursor.fetchall()
    if not rows:
        return None, []
    scope = ScopeRow(rows[0]["scope_id"], rows[0]["indexed_by"], rows[0]["scope_ttl_ms"])
    return scope, [_found(row, 1.0) for row in rows if row["entry_id"] is not None]


async def find_neighbours(
    db: Database,
    cache: CacheRow,
    scope: ScopeRow,
    *,
    embedder_id: EmbedderId,
    vector: Vector,
    attributes: dict[str, str],
    neighbours: int,
    max_age: float | None = None,
    min_ttl: float = 0.0,
    client_answers: bool = True,
) -> list[Found]:
    """The nearest living entries of a scope, nearest first. `vector` has unit length, shape (dimensions,)."""
    statement = (
        query("find_neighbours")
        if embedder_id not in scope.indexed_by
        else numbered(
            "find_neighbours_indexed",
            dimensions=len(vector),
            embedder_id=embedder_id,
            scope_id=scope.scope_id,
            neighbours=neighbours,
        )
    )
    async with db.tenant(cache.tenant_id) as connection:
        cursor = await connection.execute(
            statement,
            {
                "tenant_id": cache.tenant_id,
                "cache_id": cache.cache_id,
                "scope_id": scope.scope_id,
                "embedder_id": embedder_id,
                "vector": HalfVector(vector),
                "attributes": Jsonb(attributes),
                "neighbours": neighbours,
                "max_age": max_age,
                "min_ttl": min_ttl,
                "client_answers": client_answers,
            },
            prepare=True,
        )
        rows = await cursor.fetchall()
    found = [_found(row, _similarity(row["similarity"])) for row in rows]
    return sorted(found, key=lambda f: -f.similarity)


async def ensure_scope(
    db: Database,
    cache: CacheRow,
    *,
    scope_key: bytes,
    canonical_version: int,
    parts: dict[str, str],
    model_key: bytes,
    model: dict[str, Any],
    config_key: bytes,
    config: str,
) -> ScopeId:
    """Find or make a scope. `config` is canonical JSON text, `model` the fields of a model's identity."""
    async with db.tenant(cache.tenant_id) as connection:
        row = await connection.one(
            ENSURE_SCOPE,
            {
                "tenant_id": cache.tenant_id,
                "cache_id": cache.cache_id,
                "scope_key": scope_key,
                "canonical_version": canonical_version,
                "parts": Jsonb(parts),
                "model_key": model_key,
                "model": Jsonb({name: value and to_columns(value)[0] for name, value in model.items()}),
                "config_key": config_key,
                "config": config,
            },
        )
    return ScopeId(row["scope_id"])


async def store(
    db: Database, cache: CacheRow, entry: NewEntry, *, embedder_id: EmbedderId | None, vector: Vector | None
) -> Stored | None:
    """Store one answer, as one of the entry's `variants`. When this returns it is committed.

    None where the cache has changed since `cache` was read: nothing is stored then.
    """
    prompt, prompt_verbatim = to_columns(entry.prompt)
    async with db.tenant(cache.tenant_id) as connection:
        row = await connection.one(
            STORE_ENTRY,
            {
                "tenant_id": cache.tenant_id,
                "cache_id": cache.cache_id,
                "changes": cache.changes,
                "scope_id": entry.scope_id,
                "exact_key": entry.exact_key,
                "attributes_key": entry.attributes_key,
                "prompt": prompt,
                "prompt_verbatim": prompt_verbatim,
                "attributes": Jsonb(entry.attributes),
                "tags": entry.tags,
                "provenance": entry.provenance,
                "ttl_ms": entry.ttl_ms,
                "payload": entry.payload,
                "prompt_tokens": entry.prompt_tokens,
                "completion_tokens": entry.completion_tokens,
                "cost_ms": entry.cost_ms,
                "embedder_id": embedder_id,
                "vector": None if vector is None else HalfVector(vector),
                "variants": entry.variants,
                "answer_key": entry.answer_key,
                "features_version": FEATURES_VERSION,
                "features": None if entry.features is None else Jsonb(_to_columns(entry.features)),
            },
        )
    return Stored(row["entry_id"], row["invalidation_id"]) if row["entry_id"] else None


async def get(db: Database, cache: CacheRow, entry_id: UUID) -> EntryRow:
    """Raises: SemcacheError(ENTRY_NOT_FOUND)."""
    async with db.tenant(cache.tenant_id) as connection:
        cursor = await connection.execute(
            query("get_entry"),
            {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "entry_id": entry_id},
        )
        row = await cursor.fetchone()
    if row is None:
        raise SemcacheError(Code.ENTRY_NOT_FOUND, "there is no entry of this id in the cache; it may have been flushed")
    return _entry(row)


async def scope_of(db: Database, cache: CacheRow, entry_id: UUID) -> ScopeRow | None:
    """The scope that an entry is in; None where it is gone."""
    async with db.tenant(cache.tenant_id) as connection:
        cursor = await connection.execute(
            query("scope_of_entry"),
            {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "entry_id": entry_id},
        )
        row = await cursor.fetchone()
    return ScopeRow(row["scope_id"], row["indexed_by"]) if row else None


Listing = Literal["oldest", "newest", "pinned", "quarantined"]
_LISTED: dict[Listing, LiteralString] = {
    "oldest": "list_entries",
    "newest": "list_newest_entries",
    "pinned": "list_marked_entries",
    "quarantined": "list_marked_entries",
}


async def page(
    db: Database, cache: CacheRow, *, after: tuple[datetime, UUID] | None, limit: int, listing: Listing = "oldest"
) -> list[EntryRow]:
    """Living entries after the last row of the page before; pinned and quarantined ones come newest first too."""
    async with db.tenant(cache.tenant_id) as connection:
        cursor = await connection.execute(
            query(_LISTED[listing]),
            {
                "tenant_id": cache.tenant_id,
                "cache_id": cache.cache_id,
                "listing": listing,
                "after_at": after[0] if after else None,
                "after_id": after[1] if after else None,
                "limit": limit,
            },
        )
        return [_entry(row) for row in await cursor.fetchall()]


async def change(
    db: Database,
    cache: CacheRow,
    entry_id: UUID,
    *,
    ttl_ms: int | None,
    clear_ttl: bool,
    tags: list[str] | None,
    pinned: bool | None,
    quarantined: bool | None,
) -> InvalidationId:
    """Change what may be changed; None leaves a field. Raises: SemcacheError(ENTRY_NOT_FOUND)."""
    async with db.tenant(cache.tenant_id) as connection:
        row = await connection.one(
            "select semcache.change_entry(%s, %s, %s, %s, %s, %s, %s, %s) as invalidation_id",
            (cache.tenant_id, cache.cache_id, entry_id, ttl_ms, clear_ttl, tags, pinned, quarantined),
        )
    return InvalidationId(row["invalidation_id"])


async def delete(db: Database, cache: CacheRow, entry_id: UUID) -> InvalidationId:
    """Raises: SemcacheError(ENTRY_NOT_FOUND)."""
    async with db.tenant(cache.tenant_id) as connection:
        row = await connection.one(
            "select semcache.delete_entry(%s, %s, %s) as invalidation_id",
            (cache.tenant_id, cache.cache_id, entry_id),
        )
    return InvalidationId(row["invalidation_id"])


async def delete_many(
    db: Database,
    cache: CacheRow,
    *,
    attributes: dict[str, str],
    tags: Sequence[str],
    model: str | None,
    older_than: datetime | None,
    dry_run: bool,
) -> tuple[int, InvalidationId | None]:
    """Delete, or only count, the entries that fit every given part. Raises: SemcacheError(EMPTY_FILTER)."""
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        row = await connection.one(
            "select deleted, invalidation_id from semcache.delete_entries(%s, %s, %s, %s, %s, %s, %s)",
            (
                cache.tenant_id,
                cache.cache_id,
                Jsonb(attributes),
                list(tags),
                model and to_columns(model)[0],
                older_than,
                dry_run,
            ),
        )
    return row["deleted"], row["invalidation_id"]


async def record_feedback(db: Database, cache: CacheRow, verdict: NewObservation) -> InvalidationId | None:
    """Note a verdict; a wrong or stale answer is not served any more. Raises: SemcacheError(ENTRY_NOT_FOUND)."""
    async with db.tenant(cache.tenant_id) as connection:
        row = await connection.one(
            "select semcache.record_feedback(%s, %s, %s, %s, %s) as invalidation_id",
            (cache.tenant_id, cache.cache_id, verdict.entry_id, verdict.verdict, Jsonb(verdict.to_row())),
        )
    return cast("InvalidationId | None", row["invalidation_id"])


async def alias(db: Database, cache: CacheRow, entry_id: UUID, *, exact_key: bytes, prompt: str) -> UUID | None:
    """Let an entry answer another request exactly; None where that has an entry of its own, or this one is dead."""
    async with db.tenant(cache.tenant_id) as connection:
        row = await connection.one(
            "select semcache.alias_entry(%s, %s, %s, %s, %s, %s::json) as entry_id",
            (cache.tenant_id, cache.cache_id, entry_id, exact_key, *to_columns(prompt)),
        )
    return cast("UUID | None", row["entry_id"])


async def nearest_anywhere(
    db: Database, cache: CacheRow, *, embedder_id: EmbedderId, vector: Vector, limit: int
) -> list[Row]:
    """For explain: the nearest entries of the whole cache, whatever their scope and state, nearest first."""
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        cursor = await connection.execute(
            query("nearest_anywhere"),
            {
                "tenant_id": cache.tenant_id,
                "cache_id": cache.cache_id,
                "embedder_id": embedder_id,
                "vector": HalfVector(vector),
                "limit": limit,
            },
        )
        rows = await cursor.fetchall()
    for row in rows:
        row["prompt"] = from_columns(row["prompt"], row["prompt_verbatim"])
        row["similarity"] = _similarity(row["similarity"])
    return rows


def _to_columns(features: Features) -> dict[str, list[str]]:
    return {name: [to_columns(item)[0] for item in items] for name, items in features.to_json().items()}


def _similarity(value: float) -> float:
    """Cosine on the scale of the contract. Half precision can step over the ends by a little."""
    return min(1.0, max(0.0, float(value)))


def _found(row: Row, similarity: float) -> Found:
    return Found(
        entry_id=row["entry_id"],
        prompt=from_columns(row["prompt"], row["prompt_verbatim"]),
        attributes=row["attributes"],
        tags=row["tags"],
        provenance=row["provenance"],
        created_at=row["created_at"],
        payload=row["payload"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_ms=row["cost_ms"],
        answer_key=row["answer_key"],
        similarity=similarity,
        age=max(0.0, row["age"]),
        ttl=row["ttl"],
        labels=_labels(row) if row.get("confirmed") is not None else Labels(),
        alias=row.get("alias", False),
    )


def _labels(row: Row) -> Labels:
    fit = Fit(row["slope"], row["middle"], row["variance"], row["n"]) if row["n"] else None
    return Labels(row["confirmed"], row["refuted"], fit)


def _entry(row: Row) -> EntryRow:
    row["prompt"] = from_columns(row["prompt"], row.pop("prompt_verbatim"))
    return EntryRow(**row)


__all__ = [
    "Vector",
    "alias",
    "change",
    "delete",
    "delete_many",
    "ensure_scope",
    "find_exact",
    "find_neighbours",
    "get",
    "nearest_anywhere",
    "page",
    "record_feedback",
    "scope_of",
    "store",
]
