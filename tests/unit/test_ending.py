"""Tasks that are ended do end, also one that loses a cancellation."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from service import ending
from service.ending import end


async def test_a_task_that_loses_a_cancellation_is_ended_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "AGAIN", 0.01)

    async def stubborn() -> None:
        for _ in range(3):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def fails() -> None:
        raise ValueError

    tasks = [asyncio.create_task(stubborn()), asyncio.create_task(fails())]
    await asyncio.sleep(0)
    await asyncio.wait_for(end(tasks), 10)
    assert [task.done() for task in tasks] == [True, True]
    await end([])
