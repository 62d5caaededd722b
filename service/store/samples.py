"""Labelled requests of a cache, with the traffic that they were drawn from, as policies are compared on them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from math import ceil
from operator import itemgetter

from service.policy.cache_policy import read_policy
from service.policy.guards.checks import Outcome
from service.policy.signals import SIGNALS_VERSION, Signals
from service.policy.tradeoff import Labelled, Near, Sample
from service.store.database import Database, Row
from service.store.observations import traffic
from service.store.queries import query
from service.store.rows import CacheRow


async def read(db: Database, cache: CacheRow, since: datetime, limit: int) -> tuple[Sample, Sample]:
    """The earlier and the later half of the newest `limit` labelled candidates since a time."""
    values = {
        "tenant_id": cache.tenant_id,
        "cache_id": cache.cache_id,
        "since": since,
        "signals_version": SIGNALS_VERSION,
        "limit": limit,
    }
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        rows = await (await connection.execute(query("labelled_requests"), values)).fetchall()
    requests = [list(group) for _, group in groupby(rows, key=itemgetter("request_id"))]
    half = len(requests) // 2
    begin = requests[0][0]["at"] if requests else since
    middle = requests[half][0]["at"] if requests else since
    return (
        await _sample(db, cache, requests[:half], begin, middle),
        await _sample(db, cache, requests[half:], middle, None),
    )


async def _sample(
    db: Database, cache: CacheRow, requests: Sequence[Sequence[Row]], since: datetime, until: datetime | None
) -> Sample:
    seen = await traffic(db, cache, since, until)
    unseen = 0 if read_policy(cache.policy).labels_hits else seen.semantic_hits
    labelled = [_labelled(rows) for rows in requests]
    # The request log may be kept for a shorter time than the labels, or have lost some.
    stood_for = seen.exact_hits + ceil(sum(request.weight for request in labelled))
    return Sample(labelled, max(seen.requests, stood_for), seen.exact_hits, unseen)


def _labelled(rows: Sequence[Row]) -> Labelled:
    return Labelled(tuple(map(_near, rows)), 1 / rows[0]["inclusion"])


def _near(row: Row) -> Near:
    signals = Signals(*row["signals"]) if row["signals"] else None
    doubted = Outcome.GRAY if signals and signals.doubts else Outcome.PASS
    return Near(
        similarity=row["similarity"],
        guarded=Outcome.BLOCK if signals is None else doubted,
        correct=row["correct"],
        cluster=row["answer_key"].hex() if row["answer_key"] else row["entry_id"].hex,
        signals=signals,
    )


__all__ = ["read"]
