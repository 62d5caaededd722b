"""Ending tasks of asyncio for sure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN = 2.0  # seconds


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel these tasks and return when all have ended, however they do.

    Once is not always enough: before Python 3.12 `asyncio.wait_for` loses a cancellation that comes in the same moment
    as what it waits for (bpo-42130), and the task goes on.
    """
    given = list(tasks)
    left = {task for task in given if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN)
    for task in given:
        if not task.cancelled():
            task.exception()


__all__ = ["end"]
