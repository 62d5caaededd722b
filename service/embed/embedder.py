"""Text to vector for the rest of the service: one embedder, whether local or remote."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from service.embed.batching import Batcher, EmbedderCounts, Run
from service.embed.local import LocalModel, open_local
from service.embed.memory import TextMemory
from service.embed.remote import RemoteModel
from service.embed.vectors import Result, Vector
from service.errors import SemcacheError
from service.settings import Settings

REMOTE_CONCURRENCY = 4

# A local batch is padded to its longest text, so only texts of like length share one: 16 clients then waited
# 0.8 times as long as without batches, and 1.4 times in mixed ones. Characters stand for uncounted tokens.
_LENGTH_SLACK = 0.25
_LENGTH_GRACE = 8
_BATCH_CHARS = 4096


@dataclass(frozen=True)
class EmbedderInfo:
    """What tells one embedder from another.

    `revision` is a SHA-256 in hex. A local model's is over its files. A server does not show its files: a
    remote model's is over `probe`, its vectors for fixed texts in rows, and names a new generation; whether a
    recorded one is the same is decided by `same_generation` on the probes, since numbers vary in the last
    places. `max_tokens` None: it reads any length.
    """

    kind: Literal["local", "remote"]
    name: str
    revision: str
    dimensions: int
    max_tokens: int | None
    probe: Vector | None = None


class Embedder:
    """Embeds off the event loop, equal texts once, in batches that grow with the load; remembers vectors."""

    def __init__(
        self, info: EmbedderInfo, model: LocalModel | RemoteModel, batcher: Batcher, memory: TextMemory
    ) -> None:
        self.info = info
        self._model = model
        self._batcher = batcher
        self._memory = memory

    @property
    def stale(self) -> bool:
        """Whether the served model has changed: nothing is embedded any more, and a new embedder is due."""
        return isinstance(self._model, RemoteModel) and self._model.stale

    @property
    def counts(self) -> EmbedderCounts:
        return self._batcher.counts

    @property
    def waiting(self) -> int:
        """Texts that wait to be embedded."""
        return self._batcher.waiting

    async def embed(self, text: str) -> Vector:
        """The text's unit vector, float32, shape (dimensions,), read-only.

        Raises TextTooLong where it does not fit, and SemcacheError EMBEDDER_UNAVAILABLE.
        """
        remembered = None if self.stale else self._memory.get(text)
        if remembered is not None:
            self.counts.remembered += 1
            return remembered
        return await self._batcher.embed(text)

    async def embed_many(self, texts: Sequence[str]) -> list[Result]:
        """The vector or the error of each text, in order."""
        return list(await asyncio.gather(*(self._outcome(text) for text in texts)))

    async def close(self) -> None:
        """Stop; whoever still waits gets EMBEDDER_UNAVAILABLE."""
        await self._batcher.close()
        await self._model.close()

    async def _outcome(self, text: str) -> Result:
        try:
            return await self.embed(text)
        except SemcacheError as error:
            return error


async def open_embedder(settings: Settings, counts: EmbedderCounts | None = None) -> Embedder:
    """The embedder that the settings name, ready; it goes on with these counts.

    Raises SemcacheError EMBEDDER_UNAVAILABLE, after which a later attempt may succeed, or DIMENSION_MISMATCH.
    The first start with a local model exports it, which takes a quarter of a minute.
    """
    memory, counts = TextMemory(settings.embedder_memory), counts or EmbedderCounts()
    if settings.embedder == "local":
        return await _open_local(settings, memory, counts)
    return await _open_remote(settings, memory, counts)


async def _open_local(settings: Settings, memory: TextMemory, counts: EmbedderCounts) -> Embedder:
    local = await open_local(settings.embedder_model, settings.models_dir, settings.embedder_threads)
    info = EmbedderInfo(
        kind="local",
        name=local.files.name,
        revision=local.files.revision,
        dimensions=local.exported.dimensions,
        max_tokens=local.exported.max_tokens,
    )
    batcher = Batcher(
        remembering(local.embed, memory), lambda texts: of_like_length(texts, settings.embedder_batch), counts=counts
    )
    return Embedder(info, local, batcher, memory)


async def _open_remote(settings: Settings, memory: TextMemory, counts: EmbedderCounts) -> Embedder:
    remote = RemoteModel(settings)
    try:
        await remote.open()
    except BaseException:
        await remote.close()
        raise
    info = EmbedderInfo(
        kind="remote",
        name=remote.name,
        revision=hashlib.sha256(remote.probe.tobytes()).hexdigest(),
        dimensions=remote.dimensions,
        max_tokens=remote.max_tokens,
        probe=remote.probe,
    )
    batcher = Batcher(
        remembering(remote.embed, memory), lambda texts: texts[: settings.embedder_batch], REMOTE_CONCURRENCY, counts
    )
    return Embedder(info, remote, batcher, memory)


def remembering(run: Run, memory: TextMemory) -> Run:
    """Remembers vectors in the step that ends their batch, so that no equal text comes between the two."""

    async def run_and_remember(texts: Sequence[str]) -> Sequence[Result]:
        results = await run(texts)
        for text, result in zip(texts, results, strict=True):
            if not isinstance(result, SemcacheError):
                memory.put(text, result)
        return results

    return run_and_remember


def of_like_length(texts: Sequence[str], most: int) -> list[str]:
    """The first text, and of the others up to `most - 1` that are about as long."""
    oldest = len(texts[0])
    slack = _LENGTH_SLACK * oldest + _LENGTH_GRACE
    most = min(most, max(1, _BATCH_CHARS // (oldest + 1)))
    near = sorted(texts, key=lambda text: abs(len(text) - oldest))[:most]
    return [text for text in near if abs(len(text) - oldest) <= slack]


__all__ = ["Embedder", "EmbedderInfo", "open_embedder"]
