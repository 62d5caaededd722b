"""Collects what became of each request: counted at once, written in batches each second and at the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from service.ending import end
from service.errors import Code, SemcacheError
from service.memory.lru import Lru
from service.store import requests
from service.store.database import Database
from service.store.rows import TenantId
from service.store.text import to_columns
from service.telemetry.logs import request_id
from service.telemetry.metrics import Metrics

MOST_KEPT = 50_000
BATCH = 2_000
COUNTED = 50_000  # entries of which this replica knows how often it served them
HOT = 10

logger = logging.getLogger("semcache.recorder")


@dataclass(slots=True)
class Request:
    """One lookup: fields as the columns of request_log. saved_ms: what the served answer had cost the model in time."""

    tenant_id: TenantId
    cache_id: int
    outcome: str
    reason: str
    latency_ms: float
    scope_key: bytes | None = None
    request_key: bytes | None = None
    session: str | None = None
    turn: bytes | None = None
    conversation: bytes | None = None
    entry_id: UUID | None = None
    served: bool = False
    similarity: float | None = None
    stages: dict[str, float] = field(default_factory=dict)
    tokens_saved: int = 0
    tokens_spent: int = 0
    cost_ms: float | None = None
    saved_ms: float | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    request_id: str | None = field(default_factory=request_id.get)

    def to_row(self) -> dict[str, Any]:
        return {
            "at": self.at.isoformat(),
            "cache_id": self.cache_id,
            "scope_key": self.scope_key.hex() if self.scope_key else None,
            "request_key": self.request_key.hex() if self.request_key else None,
            "session": to_columns(self.session)[0] if self.session else None,
            "turn": self.turn.hex() if self.turn else None,
            "conversation": self.conversation.hex() if self.conversation else None,
            "entry_id": str(self.entry_id) if self.entry_id else None,
            "served": self.served,
            "outcome": self.outcome,
            "reason": self.reason,
            "similarity": self.similarity,
            "latency_ms": self.latency_ms,
            "stages": self.stages,
            "tokens_saved": self.tokens_saved,
            "tokens_spent": self.tokens_spent,
            "cost_ms": self.cost_ms,
            "request_id": self.request_id,
        }


class Recorder:
    """A bounded queue and its writer. While the database is away the oldest are dropped, and counted, as is what it
    refuses."""

    def __init__(self, db: Database, metrics: Metrics, interval: float) -> None:
        self._db, self._metrics, self._interval = db, metrics, interval
        self._queue: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._serves: Lru[UUID, int] = Lru(COUNTED, COUNTED)
        self.dropped = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_writing(), name="semcache recorder")

    async def stop(self) -> None:
        if self._task is not None:
            await end([self._task])
        with contextlib.suppress(SemcacheError):
            await self.flush()

    def note(self, row: Callable[[], Request]) -> None:
        """Count a lookup and log it as `row` has it, after what the current task does now: answers go out first."""
        asyncio.get_running_loop().call_soon(lambda: self._add(row()))

    def _add(self, request: Request) -> None:
        self._count(request)
        if len(self._queue) >= MOST_KEPT:
            self._queue.popleft()
            self.dropped += 1
        self._queue.append(request)

    @property
    def waiting(self) -> int:
        """Rows that are still to be written."""
        return len(self._queue)

    def _count(self, request: Request) -> None:
        metrics = self._metrics
        metrics.count(request.outcome, request.reason)
        answered = metrics.answered(_tier(request), self._hotness(request), request.reason)
        answered.observe(request.latency_ms / 1000)
        metrics.tokens_saved.inc(request.tokens_saved)
        metrics.seconds_saved.inc((request.saved_ms or 0) / 1000)
        for stage, milliseconds in request.stages.items():
            metrics.stage(stage).observe(milliseconds / 1000)
        if request.similarity is not None:
            metrics.nearest(request.outcome).observe(request.similarity)
        if request.cost_ms is not None:
            metrics.tokens_spent.inc(request.tokens_spent)
            metrics.seconds_spent.inc(request.cost_ms / 1000)
            metrics.stage("upstream").observe(request.cost_ms / 1000)

    def _hotness(self, request: Request) -> str:
        if not request.served or request.entry_id is None:
            return "none"
        before = self._serves.get(request.entry_id) or 0
        self._serves.put(request.entry_id, before + 1, 1)
        return "cold" if before == 0 else "warm" if before < HOT else "hot"

    async def flush(self) -> None:
        """Write all that is waiting. What could not be written waits on."""
        async with self._writing:
            while self._queue:
                tenant_id = self._queue[0].tenant_id
                batch = [request for request in islice(self._queue, BATCH) if request.tenant_id == tenant_id]
                await self._write(tenant_id, batch)
                written = set(map(id, batch))
                self._queue = deque(request for request in self._queue if id(request) not in written)

    async def _write(self, tenant_id: TenantId, batch: list[Request]) -> None:
        try:
            await requests.record(self._db, tenant_id, [request.to_row() for request in batch])
        except SemcacheError as error:
            if error.code is not Code.INTERNAL:
                raise
            self.dropped += len(batch)  # what the database refuses it would refuse for ever, and what comes after it

    async def _keep_writing(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            with contextlib.suppress(SemcacheError):
                await self.flush()


def _tier(request: Request) -> str:
    match request.outcome:
        case "hit":
            return "exact" if "exact" in request.stages else "l1"
        case "semantic_hit":
            return "semantic"
        case "coalesced":
            return "flight"
        case "stale":
            return "stale"
    return "none"


__all__ = ["Recorder", "Request"]
