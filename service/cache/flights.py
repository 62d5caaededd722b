"""Calls to the model that are under way in this process, and the bytes that they have brought so far."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable
from dataclasses import dataclass, field

from service.errors import SemcacheError
from service.upstream.answer import Answer
from service.upstream.headers import Headers


@dataclass(frozen=True, slots=True)
class Head:
    """How the model server's answer begins."""

    status: int
    headers: Headers
    streams: bool

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300


class Broadcast:
    """A log of bytes that grows, and that anyone can read from its start at a pace of their own."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._grown = asyncio.Event()
        self._over = False
        self._error: SemcacheError | None = None

    def append(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._wake()

    def end(self, error: SemcacheError | None = None) -> None:
        self._over, self._error = True, error
        self._wake()

    async def read(self) -> AsyncGenerator[bytes, None]:
        """All of it, as it comes. Raises the error that it ended with."""
        at = 0
        while True:
            if at < len(self._chunks):
                news, at = b"".join(self._chunks[at:]), len(self._chunks)
                yield news
            elif self._over:
                if self._error is not None:
                    raise self._error
                return
            else:
                await self._grown.wait()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()


@dataclass(slots=True, eq=False)
class Flight:
    """One call to the model, led by one request and followed by others.

    form: a stream of another form cannot use its bytes, only its answer. `head` becomes the beginning of the model
    server's answer, an error where there is none, or None where another replica has stored the answer already.
    `answer` becomes the whole answer; None where it never was whole.
    """

    key: Hashable
    form: Hashable
    log: Broadcast = field(default_factory=Broadcast)
    head: asyncio.Future[Head | SemcacheError | None] = field(default_factory=asyncio.Future)
    answer: asyncio.Future[Answer | None] = field(default_factory=asyncio.Future)

    def begin(self, head: Head | SemcacheError | None) -> None:
        if not self.head.done():
            self.head.set_result(head)

    def end(self, answer: Answer | None, error: SemcacheError | None = None) -> None:
        """Idempotent; whoever waits goes on."""
        self.begin(error)
        if not self.answer.done():
            self.answer.set_result(answer)
            self.log.end(error)


class Flights:
    """The flights that a request may follow."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, Flight] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def get(self, key: Hashable) -> Flight | None:
        return self._flights.get(key)

    def add(self, flight: Flight) -> bool:
        """From here on requests follow it; False where they follow another one already."""
        return self._flights.setdefault(flight.key, flight) is flight

    def remove(self, flight: Flight) -> None:
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]


__all__ = ["Broadcast", "Flight", "Flights", "Head"]
