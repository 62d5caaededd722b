"""Work that outlives the request that began it: an answer read to its end, a lookup that came too late."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from service.ending import end

T = TypeVar("T")

logger = logging.getLogger("semcache.background")


class Background:
    """Keeps tasks alive until they end, and waits for them at shutdown."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a task. What it raises is for whoever awaits it; a failure that nobody sees is logged."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def drain(self, seconds: float) -> None:
        """Wait for all tasks, and end those that take longer."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        await end(self._tasks)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.debug("background work failed: %s", type(error).__name__)


async def finished(task: asyncio.Task[Any], seconds: float | None) -> bool:
    """Whether the task ends within this time, None for ever; it goes on if not.

    It is not cancelled: ending a query in a frozen database could itself hang.
    """
    await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        await asyncio.sleep(0)  # a loop that was held up finds both ends at once, and the work's is the better one
    return task.done()


__all__ = ["Background", "finished"]
