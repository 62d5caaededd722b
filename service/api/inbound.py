"""A request's body as it comes, and the moment when its sender leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect
from starlette.types import Receive


class Inbound:
    """What comes from one client over ASGI. Bodies are read once."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[bytes] = []
        self._complete = asyncio.Event()

    async def read(self, limit: int) -> bytes | None:
        """The whole body; None where it is longer than `limit` bytes, and then `stream` gives it."""
        size = 0
        while not self._complete.is_set() and size <= limit:
            self._read.append(await self._next())
            size += len(self._read[-1])
        return b"".join(self._read) if size <= limit else None

    async def stream(self) -> AsyncIterator[bytes]:
        """The body, with what `read` has read of it. Raises ClientDisconnect."""
        for chunk in self._read:
            yield chunk
        while not self._complete.is_set():
            yield await self._next()

    async def gone(self) -> None:
        """Return when the client has left after it sent its body."""
        await self._complete.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if not message.get("more_body"):
            self._complete.set()
        return bytes(message.get("body", b""))


__all__ = ["Inbound"]
