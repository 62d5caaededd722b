"""Observations: which answers were right for which requests, as the cache found out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from service.policy.signals import SIGNALS_VERSION, Signals
from service.policy.training import Observation
from service.store.database import Database
from service.store.queries import query
from service.store.rows import CacheRow, EmbedderId
from service.store.text import to_columns

Verdict = Literal["correct", "wrong", "stale"]
Source = Literal["feedback", "exploration", "shadow", "judge", "audit"]


@dataclass(frozen=True, slots=True)
class NewObservation:
    """One candidate of one request, with the verdict on its answer.

    request_id: the same for all candidates of a request; rank: the nearest is 0. signals: None where a guard blocked
    it. answer_key: what equal answers share. probability: of being right, as the policy saw it. similarity, rank: None
    where they are not known; policy, embedder_id: also for an exact hit. inclusion: the probability with which such a
    request is observed, above 0 to 1; None where it was not drawn at random.
    """

    request_id: UUID
    entry_id: UUID
    verdict: Verdict
    source: Source
    embedder_id: EmbedderId | None
    similarity: float | None
    rank: int | None
    signals: Signals | None
    answer_key: bytes | None
    probability: float | None
    served: bool
    policy: str | None
    inclusion: float | None
    prompt: str | None = None

    def to_row(self) -> dict[str, Any]:
        readable, verbatim = (None, None) if self.prompt is None else to_columns(self.prompt)
        return asdict(self) | {
            "request_id": str(self.request_id),
            "entry_id": str(self.entry_id),
            "signals": None if self.signals is None else list(self.signals),
            "signals_version": SIGNALS_VERSION,
            "answer_key": None if self.answer_key is None else self.answer_key.hex(),
            "prompt": readable,
            "prompt_verbatim": verbatim,
        }


@dataclass(frozen=True, slots=True)
class Observed:
    """An observation that a model can learn from; fields as those of NewObservation."""

    observation_id: int
    at: datetime
    request_id: UUID
    entry_id: UUID
    similarity: float
    signals: Signals
    correct: bool
    answer_key: bytes | None
    source: Source
    served: bool
    inclusion: float | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests that were looked up; those that got, or in shadow would have got, the answer to the same request; and
    those that got a neighbour's.
    """

    requests: int
    exact_hits: int
    semantic_hits: int


async def record(db: Database, cache: CacheRow, rows: Sequence[NewObservation]) -> None:
    """Write observations of one cache."""
    async with db.tenant(cache.tenant_id) as connection:
        await connection.execute(
            "select semcache.record_observations(%s, %s, %s)",
            (cache.tenant_id, cache.cache_id, Jsonb([row.to_row() for row in rows])),
        )


async def window(
    db: Database, cache: CacheRow, embedder_id: EmbedderId, *, since: datetime, limit: int
) -> list[Observed]:
    """The newest `limit` observations after `since`, oldest first, the candidates of a request side by side."""
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        cursor = await connection.execute(
            query("observations_in_window"),
            {
                "tenant_id": cache.tenant_id,
                "cache_id": cache.cache_id,
                "embedder_id": embedder_id,
                "since": since,
                "signals_version": SIGNALS_VERSION,
                "limit": limit,
            },
        )
        rows = await cursor.fetchall()
    for row in rows:
        row["signals"] = Signals(*row["signals"])
    return [Observed(**row) for row in rows]


async def traffic(db: Database, cache: CacheRow, since: datetime, until: datetime | None = None) -> Traffic:
    """What the cache was asked from one time on and before another."""
    values = {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "since": since, "until": until}
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        return Traffic(**await connection.one(query("traffic_between"), values))


async def forget(db: Database, cache: CacheRow, *, before: datetime, limit: int) -> None:
    """Remove a batch of observations from before a time, but for feedback. `db` acts as the worker."""
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        await connection.execute(
            query("forget_observations"),
            {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "before": before, "limit": limit},
        )


def to_train_on(observed: Sequence[Observed]) -> list[Observation]:
    """What a model is fitted on. An observation that was not drawn at random has no weight in the bound."""
    numbers: dict[UUID, int] = {}
    return [
        Observation(
            request=numbers.setdefault(o.request_id, len(numbers)),
            signals=o.signals,
            correct=o.correct,
            cluster=o.answer_key.hex() if o.answer_key else o.entry_id.hex,
            weight=1 / o.inclusion if o.inclusion else 0.0,
        )
        for o in observed
    ]


__all__ = [
    "NewObservation",
    "Observed",
    "Source",
    "Traffic",
    "Verdict",
    "forget",
    "record",
    "to_train_on",
    "traffic",
    "window",
]
