"""Adaptive micro-batches: an idle embedder takes a text at once, a busy one finds a batch when it is done.

There is no timer. What arrives while a batch runs is the next batch, so the window grows with the load.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from service.embed.vectors import Result, Vector, unavailable
from service.ending import end
from service.errors import SemcacheError

logger = logging.getLogger("semcache.embed")

Run = Callable[[Sequence[str]], Awaitable[Sequence[Result]]]
Choose = Callable[[Sequence[str]], Sequence[str]]


@dataclass(slots=True)
class _Waiting:
    result: asyncio.Future[Result]
    waiters: int = 0


@dataclass
class EmbedderCounts:
    """What was embedded; `coalesced` texts joined an equal one under way, `remembered` ones had their vector."""

    batches: int = 0
    texts: int = 0
    coalesced: int = 0
    remembered: int = 0


@dataclass
class Batcher:
    """Runs `run` on batches of distinct texts, at most `concurrency` at a time.

    `choose` picks the next batch from the waiting texts, oldest first, and must take the oldest, so that
    none starves. A text that nobody waits for any more is not embedded.
    """

    run: Run
    choose: Choose
    concurrency: int = 1
    counts: EmbedderCounts = field(default_factory=EmbedderCounts)
    _queue: dict[str, _Waiting] = field(default_factory=dict)
    _running: dict[str, _Waiting] = field(default_factory=dict)
    _workers: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def waiting(self) -> int:
        """Texts that are in no batch yet."""
        return len(self._queue)

    async def embed(self, text: str) -> Vector:
        """The text's vector. Raises its SemcacheError; the batch's other texts do not feel it."""
        waiting = self._join(text)
        waiting.waiters += 1
        try:
            result = await asyncio.shield(waiting.result)
        finally:
            waiting.waiters -= 1
        if isinstance(result, SemcacheError):
            raise result.with_traceback(None)
        return result

    async def close(self) -> None:
        """End the batches under way; whoever still waits gets EMBEDDER_UNAVAILABLE."""
        await end(self._workers)
        for waiting in (self._running | self._queue).values():
            waiting.result.set_result(unavailable("The embedder is closed."))
        self._running, self._queue = {}, {}

    def _join(self, text: str) -> _Waiting:
        waiting = self._running.get(text) or self._queue.get(text)
        if waiting is not None:
            self.counts.coalesced += 1
            return waiting
        waiting = self._queue[text] = _Waiting(asyncio.get_running_loop().create_future())
        if len(self._workers) < self.concurrency:
            self._workers.add(asyncio.create_task(self._work()))
        return waiting

    async def _work(self) -> None:
        while batch := self._take():
            self._running |= batch
            results = await self._results(list(batch))
            for text, result in zip(batch, results, strict=True):
                self._running.pop(text).result.set_result(result)
        # Not by a done callback: a text that came between the end and the callback would wait for ever.
        self._workers.remove(cast("asyncio.Task[None]", asyncio.current_task()))

    def _take(self) -> dict[str, _Waiting]:
        self._queue = {text: waiting for text, waiting in self._queue.items() if waiting.waiters}
        if not self._queue:
            return {}
        return {text: self._queue.pop(text) for text in self.choose(list(self._queue))}

    async def _results(self, texts: list[str]) -> Sequence[Result]:
        self.counts.batches += 1
        self.counts.texts += len(texts)
        try:
            return await self.run(texts)
        except SemcacheError as error:
            return [error] * len(texts)
        except Exception as error:
            logger.exception("embedding a batch of %d texts failed", len(texts))
            return [unavailable(f"The embedder failed: {type(error).__name__}.")] * len(texts)


__all__ = ["Batcher", "EmbedderCounts"]
