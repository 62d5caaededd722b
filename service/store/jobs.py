"""Jobs: long work on a cache in batches, each of which counts with the place where the next begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from service.errors import Code, SemcacheError
from service.store.database import Database, Row
from service.store.queries import query
from service.store.rows import CacheRow, EmbedderId, JobKind, JobRow, TenantId

Position = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A batch that is ours to do. position: where it begins, None for the start."""

    job_id: UUID
    tenant_id: TenantId
    tenant: str
    cache_id: int
    cache: str
    kind: JobKind
    position: Position | None


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch came to. lines: JSON texts that an export has written; ended: there is no next batch."""

    position: Position | None
    done: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    lines: Sequence[str] = ()
    ended: bool = False


async def create(db: Database, cache: CacheRow, kind: JobKind, lines: Sequence[str] = ()) -> UUID:
    """lines: JSON texts that the job is to read. Raises: SemcacheError(CACHE_NOT_FOUND)."""
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        row = await connection.one(
            "select semcache.create_job(%s, %s, %s, %s::json) as job_id",
            (cache.tenant_id, cache.cache_id, kind, _array(lines)),
        )
    return UUID(str(row["job_id"]))


async def page(db: Database, cache: CacheRow, limit: int) -> list[JobRow]:
    """The newest first."""
    return await _jobs(db, cache, None, limit)


async def get(db: Database, cache: CacheRow, job_id: UUID) -> JobRow:
    """Raises: SemcacheError(JOB_NOT_FOUND)."""
    found = await _jobs(db, cache, job_id, 1)
    if not found:
        raise SemcacheError(Code.JOB_NOT_FOUND, "there is no job of this id in the cache; ended ones go after a week")
    return found[0]


async def lines(db: Database, tenant_id: TenantId, job_id: UUID, *, after: int, limit: int) -> list[tuple[int, str]]:
    """Numbers and JSON texts of a job's lines after this number."""
    values = {"tenant_id": tenant_id, "job_id": job_id, "after": after, "limit": limit}
    async with db.tenant(tenant_id, bulk=True) as connection:
        rows = await (await connection.execute(query("job_lines"), values)).fetchall()
    return [(row["number"], row["line"]) for row in rows]


async def claim(
    db: Database, holder: UUID, seconds: float, which: tuple[TenantId, UUID] | None = None
) -> Claimed | None:
    """The next batch of this tenant's job, or of the one that has waited longest, for who acts as the worker."""
    values = {"holder": holder, "seconds": seconds, "job_id": which[1] if which else None}
    async with db.tenant(which[0]) if which else db.connection() as connection:
        row = await (await connection.execute(query("claim_job"), values)).fetchone()
    return Claimed(**row) if row else None


async def renew(db: Database, claimed: Claimed, holder: UUID, seconds: float) -> None:
    """Keep a batch for so long from now on, unless another has taken it."""
    values = {"tenant_id": claimed.tenant_id, "job_id": claimed.job_id, "holder": holder, "seconds": seconds}
    async with db.tenant(claimed.tenant_id) as connection:
        await connection.execute(query("renew_job"), values)


async def advance(db: Database, claimed: Claimed, holder: UUID, batch: Batch) -> bool:
    """Note a batch; False, and nothing is noted, where another has taken it or the job was cancelled."""
    async with db.tenant(claimed.tenant_id, bulk=True) as connection:
        row = await connection.one(
            "select semcache.advance_job(%s, %s, %s, %s, %s, %s, %s::json, %s) as noted",
            (
                claimed.tenant_id,
                claimed.job_id,
                holder,
                Jsonb(batch.position),
                batch.done,
                Jsonb(batch.errors),
                _array(batch.lines),
                batch.ended,
            ),
        )
    return bool(row["noted"])


async def end(db: Database, tenant_id: TenantId, job_id: UUID, state: str, rule: str | None = None) -> None:
    """Cancel a job or note why it failed, unless it has ended. Raises: SemcacheError(JOB_NOT_FOUND)."""
    errors = [] if rule is None else [{"rule": rule}]
    async with db.tenant(tenant_id, bulk=True) as connection:
        await connection.execute("select semcache.end_job(%s, %s, %s, %s)", (tenant_id, job_id, state, Jsonb(errors)))


async def to_export(db: Database, cache: CacheRow, position: Position | None, limit: int) -> list[Row]:
    """Rows of `entries_to_export`."""
    return await _entries(db, cache, "entries_to_export", position, limit)


async def to_embed(
    db: Database, cache: CacheRow, embedder_id: EmbedderId, position: Position | None, limit: int
) -> list[Row]:
    """Rows of `entries_to_embed`."""
    return await _entries(db, cache, "entries_to_embed", position, limit, embedder_id=embedder_id)


async def add_vector(
    db: Database, cache: CacheRow, entry_id: UUID, embedder_id: EmbedderId, vector: NDArray[np.float32]
) -> None:
    values = {
        "tenant_id": cache.tenant_id,
        "entry_id": entry_id,
        "embedder_id": embedder_id,
        "vector": HalfVector(vector),
    }
    async with db.tenant(cache.tenant_id) as connection:
        await connection.execute(query("add_vector"), values, prepare=True)


async def _jobs(db: Database, cache: CacheRow, job_id: UUID | None, limit: int) -> list[JobRow]:
    values = {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "job_id": job_id, "limit": limit}
    async with db.tenant(cache.tenant_id) as connection:
        return [JobRow(**row) for row in await (await connection.execute(query("list_jobs"), values)).fetchall()]


async def _entries(
    db: Database, cache: CacheRow, name: str, position: Position | None, limit: int, **more: Any
) -> list[Row]:
    after = position or {}
    values = {
        "tenant_id": cache.tenant_id,
        "cache_id": cache.cache_id,
        "after_at": after.get("created_at"),
        "after_id": after.get("entry_id"),
        "limit": limit,
    }
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        return await (await connection.execute(query(name), values | more)).fetchall()


def _array(texts: Sequence[str]) -> str:
    return f"[{','.join(texts)}]"


__all__ = [
    "Batch",
    "Claimed",
    "Position",
    "add_vector",
    "advance",
    "claim",
    "create",
    "end",
    "get",
    "lines",
    "page",
    "renew",
    "to_embed",
    "to_export",
]
