"""Streams that replicas share: the leader shows what its call brings once another replica asks for it, in Postgres.

Who follows reads it from there as if it were the model server's response.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any, Literal

from service.cache.flights import Broadcast, Flight, Head, Outcome
from service.cache.replies import shared
from service.ending import end
from service.errors import Code, SemcacheError
from service.store import flights
from service.store.database import Database
from service.store.flights import Chunk, Lead
from service.upstream.client import UpstreamError
from service.upstream.headers import Headers

PAUSE = 0.05  # seconds between two pieces, since tokens come faster than a transaction is worth
LATEST = 1.0  # seconds between looks, where no notification comes


async def show(db: Database, lead: Lead, flight: Flight) -> None:
    """Show the stream of a flight to its end, from its first byte on; nothing where there is no good one.

    Of a stream that is longer than an answer may be, only so many of the last bytes stay. Raises: SemcacheError.
    """
    head = await flight.head.get()
    if not isinstance(head, Head) or not head.good or not head.streams:
        return
    came: list[bytes] = []
    reading = asyncio.create_task(_collect(flight.log, came))
    try:
        await asyncio.sleep(0)
        place, is_over = 0, False
        while not is_over:
            is_over, piece = reading.done(), b"".join(came)
            came.clear()
            if piece or (is_over and place):
                chunk = Chunk(place, piece, None if place else _told(head), _end_of(reading) if is_over else None)
                await flights.show_chunk(db, lead, chunk, form=flight.form, oldest=place - flight.log.limit)
                place += len(piece)
            await asyncio.wait({reading}, timeout=PAUSE)
    finally:
        await end([reading])


class FollowedStream:
    """What another replica shows of its call. `open` it, then read it once.

    news: what becomes known when there is more; made before each look, so that none is missed.
    """

    streams = True

    def __init__(self, db: Database, lead: Lead, news: Callable[[], Outcome[bool]]) -> None:
        self._db, self._lead, self._news = db, lead, news
        self._source = self._read()
        self._first = b""
        self.status = 0
        self.headers: Headers = []

    async def open(self) -> None:
        """Wait for the head and the first bytes. Raises UpstreamError."""
        self._first = await anext(self._source)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it is shown. Raises UpstreamError where it breaks off, for the leader or on the way."""
        yield self._first
        async for piece in self._source:
            yield piece

    def close(self) -> None:
        """The leader goes on."""

    async def _read(self) -> AsyncGenerator[bytes, None]:
        place = 0
        while True:
            news = self._news()
            for chunk in await self._look(place):
                if chunk.head is not None:
                    self.status, self.headers = chunk.head["status"], _headers(chunk.head)
                if chunk.piece:
                    yield chunk.piece
                place += len(chunk.piece)
                if chunk.ends == "whole":
                    return
                if chunk.ends == "broken":
                    raise _broken("as it did for that one")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.get(), LATEST)

    async def _look(self, place: int) -> list[Chunk]:
        try:
            is_alive, chunks = await flights.read_chunks(self._db, self._lead, place)
        except SemcacheError as error:
            raise _broken("since the database does not answer") from error
        if not chunks and not is_alive:
            raise _broken("since that replica is gone")
        if chunks and chunks[0].starts_at != place:
            raise _broken("since what came is no longer to be had")
        return chunks


async def _collect(log: Broadcast, came: list[bytes]) -> None:
    """Read at once whatever comes: the leader is not to wait for the database."""
    if log.whole:
        async for piece in log.read():
            came.append(piece)  # noqa: PERF401 - a comprehension would give all of it at the end


def _end_of(reading: asyncio.Task[None]) -> Literal["whole", "broken"]:
    return "broken" if reading.exception() else "whole"


def _told(head: Head) -> dict[str, Any]:
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in shared(head).headers]
    return {"status": head.status, "headers": pairs}


def _headers(told: dict[str, Any]) -> Headers:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told["headers"]]


def _broken(why: str) -> UpstreamError:
    return UpstreamError(Code.UPSTREAM_BROKEN, f"The model's answer to another replica broke off, {why}.")


__all__ = ["FollowedStream", "show"]
