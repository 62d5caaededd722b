"""A sentence-transformers CrossEncoder in this process: how probable it is that two questions ask the same."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from service.embed.local import Exported, load_graph, open_pipeline
from service.embed.models import find_cross_encoder
from service.embed.vectors import encodable

MOST_CHARACTERS = 20_000


class PairPipeline:
    """An exported cross-encoder, loaded. Blocks; one caller at a time."""

    def __init__(self, folder: Path, exported: Exported, threads: int = 0) -> None:
        self._exported = exported
        self._session, self._tokenizer = load_graph(folder, threads)

    def probability(self, first: str, second: str) -> float | None:
        """The sigmoid of the model's output, 0 to 1; None for a pair that is longer than it reads."""
        if len(first) + len(second) > MOST_CHARACTERS:
            return None
        encoding = self._tokenizer.encode(encodable(first), encodable(second))
        limit = self._exported.max_tokens
        if limit is not None and len(encoding.ids) > limit:
            return None
        fed = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        inputs = {name: np.array([fed[name]], dtype=np.int64) for name in self._exported.inputs}
        return float(self._session.run(None, inputs)[0][0, 0])


class CrossEncoder:
    """A cross-encoder with a thread of its own, so that the event loop never waits for it."""

    def __init__(self, pipeline: PairPipeline) -> None:
        self._pipeline = pipeline
        self._thread = ThreadPoolExecutor(1, "semcache-cross-encoder")

    async def probability(self, question: str, stored: str) -> float | None:
        """How probable it is that both ask the same, 0 to 1; None where they are too long to be read as a whole."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._pipeline.probability, question, stored)

    async def close(self) -> None:
        """Let the running pair end and stop the thread."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)


async def open_cross_encoder(model: str, models_dir: Path, threads: int = 0) -> CrossEncoder:
    """The cross-encoder by name or path, exported at its first use. Raises EMBEDDER_UNAVAILABLE with what to do."""
    files = await asyncio.to_thread(find_cross_encoder, model)
    return CrossEncoder(await open_pipeline("cross_encoder", PairPipeline, files, models_dir, threads))


__all__ = ["CrossEncoder", "PairPipeline", "open_cross_encoder"]
