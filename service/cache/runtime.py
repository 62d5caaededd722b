"""What the use cases work with: the parts of one service process, started and stopped together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from service.cache.background import Background
from service.cache.chores import Chores
from service.cache.coherence import Coherence
from service.cache.comparing import Comparer
from service.cache.embedding import EmbedderSlot
from service.cache.flights import Flights
from service.cache.judging import Judging
from service.cache.leadership import Leadership
from service.cache.models import ModelWatch
from service.cache.observer import Observer
from service.cache.patience import Patience
from service.cache.recorder import Recorder
from service.cache.rewriting import Rewriter
from service.cache.scoring import CrossEncoderSlot
from service.cache.sessions import Sessions
from service.memory.recent import Recent
from service.memory.replica import ReplicaMemory
from service.settings import Settings
from service.store.database import Database
from service.store.tenants import Tenant
from service.telemetry.metrics import Metrics
from service.upstream.answer import Endpoint
from service.upstream.client import UpstreamClient

MISSED_BYTES = 16 * 2**20  # searches that missed, kept until their callers store an answer
GRACE = 3.0  # seconds that calls to the model have at shutdown to end and be stored


@dataclass(frozen=True)
class Runtime:
    """One for each process; whoever makes it calls `start` and `stop`."""

    settings: Settings
    db: Database
    memory: ReplicaMemory
    coherence: Coherence
    embedder: EmbedderSlot
    cross_encoder: CrossEncoderSlot
    judging: Judging
    comparer: Comparer
    observer: Observer
    audits: Chores
    doubts: Chores
    revalidations: Chores
    recorder: Recorder
    metrics: Metrics
    background: Background
    upstream: UpstreamClient
    rewriter: Rewriter
    models: ModelWatch
    flights: Flights
    leadership: Leadership
    sessions: Sessions
    known_keys: Recent[Tenant]
    missed: Recent[object]
    patience: dict[Endpoint, Patience]
    warned: set[tuple[int, str]]

    async def start(self) -> None:
        await self.db.open()
        await self.coherence.start()
        self.embedder.start()
        self.cross_encoder.start()
        self.recorder.start()
        self.leadership.start()
        self.models.start()

    async def stop(self) -> None:
        await self.models.stop()
        for chores in (self.audits, self.doubts, self.revalidations, self.observer.chores):
            await chores.stop()
        await self.background.drain(GRACE)
        await self.upstream.aclose()
        await self.rewriter.aclose()
        await self.recorder.stop()
        await self.judging.aclose()
        await self.cross_encoder.stop()
        await self.embedder.stop()
        await self.leadership.stop()
        await self.coherence.stop()
        await self.db.close()


def build_runtime(settings: Settings, db: Database) -> Runtime:
    metrics = Metrics()
    memory = ReplicaMemory(settings.l1_entries, settings.l1_bytes)
    background, upstream = Background(), UpstreamClient(settings)
    leadership = Leadership(db, background, settings.flight_lease)
    embedder, judging = EmbedderSlot(settings, db), Judging(settings, metrics)
    comparer = Comparer(embedder, judging)
    return Runtime(
        settings=settings,
        db=db,
        memory=memory,
        coherence=Coherence(db, memory, settings.lease_duration, leadership.heard),
        embedder=embedder,
        cross_encoder=CrossEncoderSlot(settings),
        judging=judging,
        comparer=comparer,
        observer=Observer(db, comparer, metrics),
        audits=Chores(at_once=2, most=2),
        doubts=Chores(at_once=2, most=256),
        revalidations=Chores(at_once=8, most=1_000),
        recorder=Recorder(db, metrics, settings.usage_interval),
        metrics=metrics,
        background=background,
        upstream=upstream,
        rewriter=Rewriter(settings, metrics),
        models=ModelWatch(settings, upstream, background),
        flights=Flights(),
        leadership=leadership,
        sessions=Sessions(),
        known_keys=Recent(),
        missed=Recent(MISSED_BYTES),
        patience={name: Patience(settings.lookup_deadline, settings.database_timeout) for name in get_args(Endpoint)},
        warned=set(),
    )


__all__ = ["Runtime", "build_runtime"]
