"""Calls to the model that are under way in this process, and the bytes that they have brought so far."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from service.errors import SemcacheError
from service.upstream.answer import Answer
from service.upstream.headers import Headers

T = TypeVar("T")


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
    """A log of bytes that grows, and that anyone can read from its start at a pace of their own.

    Past `limit` bytes it keeps only what some reader has not had, and whoever writes waits for the slowest.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._chunks: list[bytes] = []
        self._forgotten = 0
        self._size = 0
        self._places: dict[object, int] = {}  # how many chunks each reader has had
        self._moved = asyncio.Event()
        self._over = False
        self._error: SemcacheError | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing of it may be forgotten yet."""
        return self._size <= self.limit

    @property
    def wanted(self) -> bool:
        """Whether anybody reads it."""
        return bool(self._places)

    async def append(self, chunk: bytes) -> None:
        """Past the limit this returns when all readers have had all, or have left."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._wake()
        await asyncio.sleep(0)  # readers first: they are waited for
        while not self.whole and self._forget():
            await self._moved.wait()

    def end(self, error: SemcacheError | None = None) -> None:
        """Idempotent."""
        if not self._over:
            self._over, self._error = True, error
            self._wake()

    def read(self) -> AsyncGenerator[bytes, None]:
        """All of it, as it comes, for the current task, whose end is the reader's. Raises the error that it ended with.

        Only for a log that is whole; from this call on nothing of it is forgotten unread.
        """
        reader, task = object(), asyncio.current_task()
        self._places[reader] = 0
        if task is not None:
            task.add_done_callback(lambda _: self._leave(reader))
        return self._read(reader)

    async def _read(self, reader: object) -> AsyncGenerator[bytes, None]:
        while True:
            place = self._places[reader]
            if place < self._written:
                news = b"".join(self._chunks[place - self._forgotten :])
                written = self._written
                yield news
                self._places[reader] = written
                self._wake()
            elif self._over:
                if self._error is not None:
                    raise self._error
                return
            else:
                await self._moved.wait()

    @property
    def _written(self) -> int:
        return self._forgotten + len(self._chunks)

    def _forget(self) -> bool:
        """Forget what all have had; whether anything is left."""
        had = min(self._places.values(), default=self._written)
        del self._chunks[: had - self._forgotten]
        self._forgotten = had
        return bool(self._chunks)

    def _leave(self, reader: object) -> None:
        del self._places[reader]
        self._wake()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


class Outcome(Generic[T]):
    """What becomes known once, and is waited for by any number of tasks."""

    def __init__(self) -> None:
        self._known = asyncio.Event()
        self._value: T | None = None

    def settle(self, value: T) -> None:
        """The first one counts."""
        if not self._known.is_set():
            self._value = value
            self._known.set()

    async def get(self) -> T:
        await self._known.wait()
        return cast("T", self._value)

    @property
    def so_far(self) -> T | None:
        """None where it is not known yet."""
        return self._value


@dataclass(slots=True, eq=False)
class Flight:
    """One call to the model, led by one request and followed by others.

    form: a stream of another form cannot use its bytes, only its answer. `head` becomes the beginning of the model
    server's answer, an error where there is none, or None where another replica has stored the answer already.
    `answer` becomes the whole answer; None where there is none to share.
    """

    key: Hashable
    form: str
    log: Broadcast
    head: Outcome[Head | SemcacheError | None] = field(default_factory=Outcome)
    answer: Outcome[Answer | None] = field(default_factory=Outcome)

    def end(self, answer: Answer | None, error: SemcacheError | None = None) -> None:
        """Idempotent; whoever waits goes on."""
        self.head.settle(error)
        self.answer.settle(answer)
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


__all__ = ["Broadcast", "Flight", "Flights", "Head", "Outcome"]
