"""The wire to Postgres, which tests can cut, hold up, and give back."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self

from sqlalchemy import make_url


class Relay:
    """Listens on loopback and passes bytes to the server of a database URL. `url` goes through it."""

    def __init__(self, url: str) -> None:
        self._target = make_url(url)
        self._tasks: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_up = True

    @property
    def url(self) -> str:
        query = {name: value for name, value in self._target.query.items() if name not in ("host", "port")}
        through = self._target.set(host="127.0.0.1", port=self._port, query=query)
        return through.render_as_string(hide_password=False)

    def down(self) -> None:
        """Cut every connection, and new ones at once."""
        self._is_up = False
        for task in self._tasks:
            task.cancel()

    def hang(self) -> None:
        """Pass nothing on, in either direction, and let new connections wait."""
        self._flows.clear()

    def up(self) -> None:
        self._is_up = True
        self._flows.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.down()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())  # also when it is cancelled before it begins

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if self._is_up:
                await self._relay(reader, writer)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flows.wait()
        there, back = await self._connect()
        flows = [asyncio.create_task(self._flow(*pair)) for pair in ((reader, back), (there, writer))]
        try:
            await asyncio.wait(flows, return_when=asyncio.FIRST_COMPLETED)
        finally:
            back.transport.abort()
            for flow in flows:
                flow.cancel()
            await asyncio.gather(*flows, return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host = str(self._target.query.get("host") or self._target.host)
        port = int(str(self._target.query.get("port") or self._target.port or 5432))
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _flow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
