"""A call under way, and those who read what it brings."""

import asyncio

import pytest

from service.cache.flights import Broadcast, Flight, Flights, Head
from service.errors import Code, SemcacheError
from service.upstream.answer import text_answer

BROKEN = SemcacheError(Code.UPSTREAM_BROKEN, "broken off")


async def test_everyone_reads_the_log_from_its_start_at_their_own_pace():
    log = Broadcast()

    async def read():
        return b"".join([chunk async for chunk in log.read()])

    early = asyncio.create_task(read())
    for piece in (b"a", b"b", b"c"):
        log.append(piece)
        await asyncio.sleep(0)
    late = asyncio.create_task(read())
    await asyncio.sleep(0)
    log.append(b"d")
    log.end()
    assert await early == await late == await read() == b"abcd"


async def test_a_reader_gets_all_that_came_and_then_the_error():
    log = Broadcast()
    log.append(b"half")
    log.end(BROKEN)
    seen = []
    with pytest.raises(SemcacheError):
        seen += [chunk async for chunk in log.read()]
    reader = log.read()
    assert await anext(reader) == b"half"


async def test_an_end_is_the_first_one_only():
    flight = Flight("key", "form")
    answer = text_answer("chat", "Yes.", "m")
    flight.begin(Head(200, [], streams=False))
    flight.end(answer)
    flight.end(None, BROKEN)
    assert (await flight.head, await flight.answer) == (Head(200, [], streams=False), answer)
    assert [chunk async for chunk in flight.log.read()] == []


async def test_an_end_before_the_beginning_tells_the_error():
    flight = Flight("key", "form")
    flight.end(None, BROKEN)
    assert (await flight.head, await flight.answer) == (BROKEN, None)


async def test_the_first_flight_of_a_key_is_followed_until_it_is_removed():
    flights, one, two = Flights(), Flight("key", 1), Flight("key", 2)
    assert (flights.add(one), flights.add(two), flights.get("key")) == (True, False, one)
    flights.remove(two)
    assert flights.get("key") is one
    flights.remove(one)
    assert flights.get("key") is None
