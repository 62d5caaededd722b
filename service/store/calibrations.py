"""What a worker fitted for a cache: read with the cache, and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from service.policy.calibrated import read_calibration
from service.policy.policies import Learned
from service.policy.signals import Frequencies
from service.policy.verified import Fit
from service.store.database import Database, Row
from service.store.queries import query
from service.store.rows import CacheRow, EmbedderId, InvalidationId


async def read(db: Database, cache: CacheRow) -> dict[EmbedderId, Learned]:
    """What was fitted for the cache, by embedder."""
    async with db.tenant(cache.tenant_id) as connection:
        cursor = await connection.execute(
            query("calibrations_of_cache"), {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id}, prepare=True
        )
        return {EmbedderId(row["embedder_id"]): _learned(row) for row in await cursor.fetchall()}


async def save(
    db: Database,
    cache: CacheRow,
    embedder_id: EmbedderId,
    learned: Learned,
    *,
    last: int,
    fits: Mapping[UUID, Fit],
) -> InvalidationId | None:
    """Keep what was fitted, and the fits of single entries; every replica's next lookup decides by it.

    `last` is the number of the last observation that was there. None where the cache is gone. `db` acts as the worker.
    """
    async with db.connection(bulk=True) as connection:
        row = await connection.one(
            "select semcache.save_calibration(%s, %s, %s, %s, %s, %s, %s, %s, %s) as invalidation_id",
            (
                cache.tenant_id,
                cache.cache_id,
                embedder_id,
                Jsonb(learned.calibration.to_json()) if learned.calibration else None,
                Jsonb(_counted(learned.frequencies)),
                Jsonb(asdict(learned.pooled)) if learned.pooled else None,
                learned.calibration.observations if learned.calibration else 0,
                last,
                Jsonb([{"entry_id": str(entry_id), **asdict(fit)} for entry_id, fit in fits.items()]),
            ),
        )
    return InvalidationId(row["invalidation_id"]) if row["invalidation_id"] else None


def _learned(row: Row) -> Learned:
    return Learned(
        calibration=read_calibration(row["model"]) if row["model"] else None,
        frequencies=Frequencies(**row["frequencies"]),
        pooled=Fit(**row["pooled"]) if row["pooled"] else None,
    )


def _counted(frequencies: Frequencies) -> dict[str, Any]:
    return {"total": frequencies.total, "counts": dict(frequencies.counts)}


__all__ = ["read", "save"]
