"""Writes down which stored answers were right for a request, once a fresh answer is there to compare them with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from service.cache.chores import Chores
from service.cache.comparing import Comparer
from service.errors import SemcacheError
from service.policy.cache_policy import Compare
from service.policy.comparison import Said
from service.policy.decision import Policy
from service.policy.signals import Signals
from service.store import observations
from service.store.database import Database
from service.store.observations import NewObservation, Source, Verdict
from service.store.rows import CacheRow, EmbedderId
from service.telemetry.metrics import Metrics

MOST_WAITING = 256
LONGEST = 200_000  # characters of all answers of one comparison, so that those which wait fit in memory
REST = 3  # seconds of rest for each of comparing: embedding answers must not hold up those who wait for a lookup


@dataclass(frozen=True, slots=True)
class Near:
    """A stored answer near a request, as the policy saw it. signals: None where a guard blocked it, or it is exact."""

    entry_id: UUID
    similarity: float
    said: Said
    answer_key: bytes | None
    signals: Signals | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """A request with what is near it, nearest first. `served` is the entry whose answer it got.

    policy, embedder_id: None for an exact hit, which then is the only one near.
    """

    cache: CacheRow
    question: str
    near: Sequence[Near]
    policy: Policy | None = None
    embedder_id: EmbedderId | None = None
    served: UUID | None = None


class Observer:
    """Compares one request at a time, and rests in between."""

    def __init__(self, db: Database, comparer: Comparer, metrics: Metrics) -> None:
        self._db, self._comparer, self._metrics = db, comparer, metrics
        self.chores = Chores(at_once=1, most=MOST_WAITING)

    def observe_later(
        self, sighting: Sighting, fresh: Said, rule: Compare, source: Source, inclusion: float | None
    ) -> None:
        """Compare and record off the request path, or drop it where it is too long or too much waits."""

        async def work() -> None:
            begun = time.perf_counter()
            verdicts = await self.compare(sighting, fresh, rule)
            await self.record(sighting, verdicts, source, inclusion)
            await asyncio.sleep(REST * (time.perf_counter() - begun))

        length = len(fresh.text) + sum(len(near.said.text) for near in sighting.near)
        if length > LONGEST or not self.chores.begin(uuid4(), work):
            self._metrics.unobserved.inc()

    async def compare(self, sighting: Sighting, fresh: Said, rule: Compare) -> Mapping[UUID, Verdict] | None:
        """A verdict on every near answer; None where one of them cannot be compared, since some were no fair sample."""
        verdicts: dict[UUID, Verdict] = {}
        known: dict[Said, bool | None] = {}
        for near in sighting.near:
            if near.said not in known:
                known[near.said] = await self._comparer.same(rule, sighting.question, fresh, near.said)
            same = known[near.said]
            if same is None:
                return None
            verdicts[near.entry_id] = "correct" if same else "wrong" if sighting.policy else "stale"
        return verdicts

    async def record(
        self, sighting: Sighting, verdicts: Mapping[UUID, Verdict] | None, source: Source, inclusion: float | None
    ) -> None:
        """Write down verdicts on near entries. A failure is nobody's but the counter's."""
        if verdicts is None:
            self._metrics.observations.labels(source, "unclear").inc()
            return
        request_id, question = uuid4(), sighting.question
        rows = [
            row_of(
                sighting,
                rank,
                request_id,
                verdict,
                source=source,
                inclusion=inclusion,
                prompt=None if verdict == "correct" else question,
            )
            for rank, near in enumerate(sighting.near)
            if (verdict := verdicts.get(near.entry_id)) is not None
        ]
        try:
            await observations.record(self._db, sighting.cache, rows)
        except SemcacheError:
            self._metrics.unobserved.inc()
            return
        for row in rows:
            self._metrics.observations.labels(source, row.verdict).inc()


def row_of(
    sighting: Sighting,
    rank: int,
    request_id: UUID,
    verdict: Verdict,
    *,
    source: Source,
    inclusion: float | None,
    prompt: str | None,
) -> NewObservation:
    """The verdict on one of those near; `prompt` where people are to read what was asked."""
    near = sighting.near[rank]
    return NewObservation(
        request_id=request_id,
        entry_id=near.entry_id,
        verdict=verdict,
        source=source,
        embedder_id=sighting.embedder_id,
        similarity=near.similarity,
        rank=rank,
        signals=near.signals,
        answer_key=near.answer_key,
        probability=near.probability,
        served=near.entry_id == sighting.served,
        policy=sighting.policy,
        inclusion=inclusion,
        prompt=prompt,
    )


__all__ = ["Near", "Observer", "Sighting", "row_of"]
