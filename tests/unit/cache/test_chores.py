import asyncio

import pytest

from service.cache.chores import Chores
from service.errors import Code, SemcacheError


async def test_a_few_at_a_time_each_once_and_not_too_many() -> None:
    chores, gate, done = Chores(at_once=1, most=2), asyncio.Event(), []

    async def work(name: str) -> None:
        done.append(name)
        await gate.wait()

    assert chores.begin("a", lambda: work("a"))
    assert not chores.begin("a", lambda: work("a again"))
    assert chores.begin("b", lambda: work("b"))
    assert not chores.begin("c", lambda: work("c"))
    await asyncio.sleep(0)
    assert done == ["a"]
    gate.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert done == ["a", "b"]
    assert chores.begin("a", lambda: work("a"))
    await chores.stop()


@pytest.mark.parametrize("error", [SemcacheError(Code.DATABASE_UNAVAILABLE, "away"), ValueError("broken")])
async def test_a_failure_ends_nothing_else(error: Exception) -> None:
    chores, done = Chores(at_once=1, most=2), asyncio.Event()

    async def fails() -> None:
        raise error

    async def works() -> None:
        done.set()

    chores.begin("a", fails)
    chores.begin("b", works)
    await asyncio.wait_for(done.wait(), 5)


async def test_stopping_waits_for_nobody() -> None:
    chores = Chores(at_once=1, most=2)
    chores.begin("a", asyncio.Event().wait)  # type: ignore[arg-type] # its result is of no interest
    chores.begin("b", asyncio.Event().wait)  # type: ignore[arg-type]
    await asyncio.wait_for(chores.stop(), 5)
    assert chores.begin("a", lambda: asyncio.sleep(0))
    await chores.stop()
