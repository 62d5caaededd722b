"""What the use cases work with: the parts of one service process, started and stopped together."""

from __future__ import annotations

from dataclasses import dataclass

from service.cache.coherence import Coherence
from service.cache.embedding import EmbedderSlot
from service.cache.recorder import Recorder
from service.memory.replica import ReplicaMemory
from service.settings import Settings
from service.store.database import Database
from service.telemetry.metrics import Metrics


@dataclass(frozen=True)
class Runtime:
    """One for each process; whoever makes it calls `start` and `stop`."""

    settings: Settings
    db: Database
    memory: ReplicaMemory
    coherence: Coherence
    embedder: EmbedderSlot
    recorder: Recorder
    metrics: Metrics

    async def start(self) -> None:
        await self.db.open()
        await self.coherence.start()
        self.embedder.start()
        self.recorder.start()

    async def stop(self) -> None:
        await self.recorder.stop()
        await self.embedder.stop()
        await self.coherence.stop()
        await self.db.close()


def build_runtime(settings: Settings, db: Database) -> Runtime:
    metrics = Metrics()
    memory = ReplicaMemory(settings.l1_entries, settings.l1_bytes)
    return Runtime(
        settings=settings,
        db=db,
        memory=memory,
        coherence=Coherence(db, memory, settings.lease_duration),
        embedder=EmbedderSlot(settings, db),
        recorder=Recorder(db, metrics, settings.usage_interval),
        metrics=metrics,
    )


__all__ = ["Runtime", "build_runtime"]
