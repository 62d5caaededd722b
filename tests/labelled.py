"""Labelled candidates of requests, as the service records them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

from stored import Cached, key

from service.policy.signals import Signals
from service.store import observations
from service.store.observations import NewObservation

SIGNALS = Signals(**dict.fromkeys(Signals._fields, 0.0))


def label(known: Cached, similarity: float = 0.9, *, correct: bool = True, **changes: Any) -> NewObservation:
    row = NewObservation(
        request_id=uuid4(),
        entry_id=known.entry_id,
        verdict="correct" if correct else "wrong",
        source="exploration",
        embedder_id=known.embedder_id,
        similarity=similarity,
        rank=0,
        signals=SIGNALS._replace(similarity=similarity),
        answer_key=key("answer"),
        probability=None,
        served=False,
        policy="verified",
        inclusion=0.25,
    )
    return replace(row, **changes)


async def record(known: Cached, *rows: NewObservation) -> None:
    await observations.record(known.db, known.cache, rows)


async def labels(known: Cached, wrong: float, *, count: int = 250, **changes: Any) -> None:
    """So many labelled requests at once, of which this share was wrong, each about another answer."""
    step = round(1 / wrong) if wrong else count + 1
    rows = [
        label(known, correct=bool((i + 1) % step), answer_key=uuid4().bytes * 2, **{"similarity": 0.92} | changes)
        for i in range(count)
    ]
    await record(known, *rows)


__all__ = ["SIGNALS", "label", "labels", "record"]
