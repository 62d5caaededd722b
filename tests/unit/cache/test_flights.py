"""A call under way, and those who read what it brings."""

import asyncio

import pytest

from service.cache.flights import Broadcast, Flight, Flights, Head
from service.errors import Code, SemcacheError
from service.upstream.answer import text_answer

BROKEN = SemcacheError(Code.UPSTREAM_BROKEN, "broken off")


async def all_of(log: Broadcast) -> bytes:
    return b"".join([chunk async for chunk in log.read()])


async def test_everyone_reads_the_log_from_its_start_at_their_own_pace() -> None:
    log = Broadcast(4)
    early = asyncio.create_task(all_of(log))
    for piece in (b"a", b"b", b"c"):
        await log.append(piece)
    late = asyncio.create_task(all_of(log))
    await log.append(b"d")
    log.end()
    assert await early == await late == await all_of(log) == b"abcd"


async def test_a_reader_gets_all_that_came_and_then_the_error() -> None:
    log = Broadcast(4)
    await log.append(b"half")
    log.end(BROKEN)
    reader = log.read()
    assert await anext(reader) == b"half"
    with pytest.raises(SemcacheError):
        await anext(reader)


async def test_past_its_limit_a_log_waits_for_the_slowest_reader_and_keeps_nothing_else() -> None:
    log, slow_may = Broadcast(2), asyncio.Event()

    async def slowly() -> bytes:
        got = []
        async for chunk in log.read():
            got.append(chunk)
            await slow_may.wait()
        return b"".join(got)

    readers = [asyncio.create_task(all_of(log)), asyncio.create_task(slowly())]
    await asyncio.sleep(0)
    await log.append(b"ab")
    assert log.whole
    writing = asyncio.create_task(log.append(b"cd"))
    await asyncio.wait({writing}, timeout=0.05)
    assert (writing.done(), log.whole) == (False, False)
    slow_may.set()
    await writing
    assert log._chunks == []
    await log.append(b"ef")
    log.end()
    assert await asyncio.gather(*readers) == [b"abcdef"] * 2


async def test_past_its_limit_a_log_does_not_wait_for_readers_that_left() -> None:
    log = Broadcast(2)

    async def leave() -> None:
        log.read()

    await asyncio.create_task(leave())
    await log.append(b"abc")
    assert (log.whole, log.wanted) == (False, False)


async def test_an_end_is_the_first_one_only() -> None:
    flight = Flight("key", "form", Broadcast(9))
    answer = text_answer("chat", "Yes.", "m")
    head = Head(200, [], streams=False)
    assert flight.answer.so_far is None
    flight.head.settle(head)
    flight.end(answer)
    flight.end(None, BROKEN)
    assert (await flight.head.get(), await flight.answer.get(), flight.answer.so_far) == (head, answer, answer)
    assert await all_of(flight.log) == b""


async def test_an_end_before_the_beginning_tells_the_error() -> None:
    flight = Flight("key", "form", Broadcast(9))
    flight.end(None, BROKEN)
    assert (await flight.head.get(), await flight.answer.get()) == (BROKEN, None)


async def test_the_first_flight_of_a_key_is_followed_until_it_is_removed():
    flights, one, two = Flights(), Flight("key", 1, Broadcast(9)), Flight("key", 2, Broadcast(9))
    assert (flights.add(one), flights.add(two), flights.get("key")) == (True, False, one)
    flights.remove(two)
    assert flights.get("key") is one
    flights.remove(one)
    assert flights.get("key") is None
