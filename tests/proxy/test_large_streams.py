"""Streams that are longer than what is stored: they pass whole, and are not held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import psutil
import pytest
from asking import Asker, asked, chat

from tests.fakes.upstream import FakeUpstream, Reply, chat_body, chat_chunk, lines
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

(PIECE,) = lines(chat_chunk({"content": "a long word " * 5_000}), done=False)
PIECES = 200_000_000 // len(PIECE)
LIMIT = 1_000_000
MOST_HELD = 60_000_000


@pytest.fixture
async def asker(start: Start) -> AsyncIterator[Asker]:
    async with Asker((await start(max_answer_bytes=LIMIT)).base) as made:
        yield made


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


async def test_a_long_stream_passes_whole_to_all_and_is_not_held(upstream: FakeUpstream, asker: Asker) -> None:
    gate = asyncio.Event()
    upstream.on("epic", Reply(chunks=[PIECE] * PIECES, gates={1: gate}), Reply(json=chat_body("No.")))
    body = chat("Tell the whole epic", stream=True)
    before, most, is_long = resident(), 0, asyncio.Event()

    async def read(response: httpx.Response) -> int:
        nonlocal most
        seen = 0
        async for chunk in response.aiter_raw():
            seen += len(chunk)
            most = max(most, resident() - before)
            if seen > 4 * LIMIT:
                is_long.set()
        return seen

    async with asker.open(body) as leader, asker.open(body) as follower:
        assert (leader.headers["x-cache"], follower.headers["x-cache"]) == ("MISS", "COALESCED")
        gate.set()
        reading = asyncio.gather(read(leader), read(follower))
        await is_long.wait()
        other = await asker.ask(chat("Tell the whole epic"))
        assert (other.cache, other.text) == ("MISS", "No.")
        assert await reading == [PIECES * len(PIECE)] * 2
    assert most < MOST_HELD


async def test_the_model_may_stop_once_nobody_reads_what_is_too_long_to_be_stored(
    upstream: FakeUpstream, asker: Asker
) -> None:
    upstream.on("saga", Reply(chunks=[PIECE] * PIECES, gates={PIECES - 1: asyncio.Event()}))
    seen = 0
    async with asker.open(chat("Tell the whole saga", stream=True)) as response:
        async for chunk in response.aiter_raw():
            seen += len(chunk)
            if seen > 4 * LIMIT:
                break
    async with asyncio.timeout(20):
        await asked(upstream, "saga")[0].finished.wait()
