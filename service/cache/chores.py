"""Background work that may be dropped: a few at a time, each thing once, nothing that holds up the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from service.ending import end
from service.errors import SemcacheError

logger = logging.getLogger("semcache.chores")


class Chores:
    """At most `at_once` run and at most `most` are there, running ones included."""

    def __init__(self, at_once: int, most: int) -> None:
        self._places, self._most = asyncio.Semaphore(at_once), most
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Whether it is begun: not where one of this name is there already, and not where too many are."""
        if name in self._tasks or len(self._tasks) >= self._most:
            return False
        self._tasks[name] = asyncio.create_task(self._run(name, work))
        return True

    async def stop(self) -> None:
        """End all of them as they are."""
        await end(self._tasks.values())

    async def _run(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            async with self._places:
                await work()
        except SemcacheError as error:
            logger.info("a chore was not done: %s", error.code.slug)
        except Exception:
            logger.exception("a chore failed")
        finally:
            del self._tasks[name]


__all__ = ["Chores"]
