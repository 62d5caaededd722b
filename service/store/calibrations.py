"""What a worker fitted for a cache: read with the cache, and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from service.policy.boundary import Budget
from service.policy.calibrated import read_calibration
from service.policy.policies import Learned
from service.policy.signals import Frequencies
from service.policy.verified import Fit
from service.store.database import Database, Row
from service.store.queries import query
from service.store.rows import CacheRow, EmbedderId, InvalidationId, Labels


@dataclass(frozen=True, slots=True)
class Due:
    """A cache with an embedder, and what is new since it was calibrated.

    budget: the one fitted for, None where there is no model. observations: the labelled requests it rests on. last and
    learned: numbers of the newest observation now and then; requests: how many were labelled since; alarming: an
    answer was called wrong since. old: a day has passed. grown: entries have, by a tenth.
    """

    cache: CacheRow
    embedder_id: EmbedderId
    budget: Budget | None
    observations: int
    old: bool
    tightened_at: datetime | None
    last: int
    learned: int
    requests: int
    alarming: bool
    grown: bool


async def due(db: Database) -> list[Due]:
    """All caches that have vectors. `db` acts as the worker."""
    async with db.connection(bulk=True) as connection:
        cursor = await connection.execute(query("caches_to_calibrate"))
        return [_due(row) for row in await cursor.fetchall()]


async def frequencies(db: Database, cache: CacheRow, *, entries: int, words: int) -> Frequencies:
    """In how many of the cache's newest `entries` each of the most frequent `words` stands."""
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        row = await connection.one(
            query("document_frequencies"),
            {
                "tenant_id": cache.tenant_id,
                "cache_id": cache.cache_id,
                "epoch": cache.epoch,
                "entries": entries,
                "words": words,
            },
        )
    return Frequencies(**row)


async def read(db: Database, cache: CacheRow) -> dict[EmbedderId, Learned]:
    """What was fitted for the cache, by embedder."""
    async with db.tenant(cache.tenant_id) as connection:
        cursor = await connection.execute(
            query("calibrations_of_cache"), {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id}, prepare=True
        )
        return {EmbedderId(row["embedder_id"]): _learned(row) for row in await cursor.fetchall()}


async def stats(db: Database, cache: CacheRow) -> list[Row]:
    """What the cache has learned: rows of `calibration_stats`."""
    async with db.tenant(cache.tenant_id) as connection:
        return await (await connection.execute(query("calibration_stats"), {"cache_id": cache.cache_id})).fetchall()


async def save(
    db: Database,
    cache: CacheRow,
    embedder_id: EmbedderId,
    learned: Learned,
    *,
    last: int,
    tightened_at: datetime | None,
    entries: Mapping[UUID, Labels],
) -> InvalidationId | None:
    """Keep what was fitted, and what labels say of these entries; every replica's next lookup decides by it.

    `last` is the number of the last observation that was there, `tightened_at` when the last alarm of drift was. None,
    and nothing is kept, where the cache is gone or another alarm came meanwhile. `db` acts as the worker.
    """
    async with db.connection(bulk=True) as connection:
        row = await connection.one(
            "select semcache.save_calibration(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) as invalidation_id",
            (
                cache.tenant_id,
                cache.cache_id,
                embedder_id,
                Jsonb(learned.calibration.to_json()) if learned.calibration else None,
                Jsonb(_counted(learned.frequencies)),
                Jsonb(asdict(learned.pooled)) if learned.pooled else None,
                learned.calibration.observations if learned.calibration else 0,
                last,
                Jsonb([_labelled(entry_id, labels) for entry_id, labels in entries.items()]),
                tightened_at,
            ),
        )
    return InvalidationId(row["invalidation_id"]) if row["invalidation_id"] else None


async def tighten(
    db: Database, cache: CacheRow, embedder_id: EmbedderId, *, policy: dict[str, Any] | None, detail: dict[str, Any]
) -> InvalidationId | None:
    """Throw away what was learned, and change the policy by these keys; `detail` is for the audit log.

    None where the cache is gone. `db` acts as the worker.
    """
    async with db.connection(bulk=True) as connection:
        row = await connection.one(
            "select semcache.tighten_cache(%s, %s, %s, %s, %s) as invalidation_id",
            (cache.tenant_id, cache.cache_id, embedder_id, Jsonb(policy) if policy else None, Jsonb(detail)),
        )
    return InvalidationId(row["invalidation_id"]) if row["invalidation_id"] else None


def _due(row: Row) -> Due:
    cache = CacheRow(**{f.name: row.pop(f.name) for f in fields(CacheRow)})
    budget = row.pop("budget")
    return Due(cache, budget=Budget(**budget) if budget else None, **row)


def _learned(row: Row) -> Learned:
    return Learned(
        calibration=read_calibration(row["model"]) if row["model"] else None,
        frequencies=Frequencies(**row["frequencies"]),
        pooled=Fit(**row["pooled"]) if row["pooled"] else None,
    )


def _labelled(entry_id: UUID, labels: Labels) -> dict[str, Any]:
    counts = {"entry_id": str(entry_id), "confirmed": labels.confirmed, "refuted": labels.refuted}
    return counts | (asdict(labels.fit) if labels.fit else {})


def _counted(frequencies: Frequencies) -> dict[str, Any]:
    return {"total": frequencies.total, "counts": dict(frequencies.counts)}


__all__ = ["Due", "due", "frequencies", "read", "save", "stats", "tighten"]
