"""A scriptable model server on loopback that speaks HTTP/1.1 by hand, so that it can also break every rule.

    async with FakeUpstream() as upstream:
        upstream.on("/v1/chat/completions", Reply(json=chat_body("Noon.")))

Replies of one rule are used in order and the last one stays. A rule matches a path, or a text inside the body.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import h11

EVENTS = "text/event-stream; charset=utf-8"


@dataclass
class Reply:
    """What is answered. `chunks` are written one by one; `gates[i]` is awaited before chunk i."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    json: Any = None
    chunks: Sequence[bytes] = ()
    gates: dict[int, asyncio.Event] = field(default_factory=dict)
    hold: asyncio.Event | None = None
    cut_after: int | None = None
    drop: bool = False

    @property
    def body(self) -> list[bytes]:
        return [json.dumps(self.json).encode()] if self.json is not None else list(self.chunks)


@dataclass
class Call:
    """One request as it arrived. `aborted` is set when the caller closed the connection before the end."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    pieces: list[bytes] = field(default_factory=list)
    aborted: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


class FakeUpstream:
    """The server, its rules and what it was asked."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.arrived = asyncio.Event()
        self._rules: list[tuple[str, list[Reply]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def on(self, match: str, *replies: Reply) -> None:
        """Answer requests to the path `match`, or with the text `match` in the body. The newest rule wins."""
        self._rules.insert(0, (match, list(replies)))

    def forget(self) -> None:
        """Forget rules and calls."""
        self.calls.clear()
        self._rules.clear()
        self.arrived.clear()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(h11.Connection(h11.SERVER), reader, writer)
        except (ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, wire: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call: Call | None = None
        async for event in _events(wire, reader):
            if isinstance(event, h11.Request):
                headers = [(n.decode(), v.decode("latin-1")) for n, v in event.headers]
                call = Call(event.method.decode(), event.target.decode(), headers)
                self.calls.append(call)
                self.arrived.set()
            elif isinstance(event, h11.Data) and call:
                call.pieces.append(bytes(event.data))
        if call is None:
            return
        call.body = b"".join(call.pieces)
        self.arrived.set()
        watch = asyncio.ensure_future(reader.read(1))
        answer = asyncio.ensure_future(self._answer(call, wire, writer))
        await asyncio.wait({watch, answer}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            call.aborted.set()
            answer.cancel()
        watch.cancel()
        await asyncio.gather(watch, answer, return_exceptions=True)
        call.finished.set()

    async def _answer(self, call: Call, wire: h11.Connection, writer: asyncio.StreamWriter) -> None:
        reply = self._reply(call)
        if reply.hold:
            await reply.hold.wait()
        if reply.drop:
            return
        headers = {
            "connection": "close",
            "content-type": EVENTS if reply.chunks else "application/json",
        } | reply.headers
        if "content-length" not in headers and reply.json is not None:
            headers["content-length"] = str(len(reply.body[0]))
        elif "content-length" not in headers:
            headers["transfer-encoding"] = "chunked"
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        writer.write(wire.send(h11.Response(status_code=reply.status, headers=pairs)))
        await writer.drain()
        for number, chunk in enumerate(reply.body):
            if number in reply.gates:
                await reply.gates[number].wait()
            if reply.cut_after is not None and number >= reply.cut_after:
                return
            writer.write(wire.send(h11.Data(chunk)))
            await writer.drain()
        writer.write(wire.send(h11.EndOfMessage()))
        await writer.drain()

    def _reply(self, call: Call) -> Reply:
        path = call.target.partition("?")[0]
        text = call.body.decode("utf-8", "replace")
        for match, replies in self._rules:
            if match == path or (not match.startswith("/") and match in text):
                return replies.pop(0) if len(replies) > 1 else replies[0]
        return Reply(status=404, json={"detail": "Not Found"})


async def _events(wire: h11.Connection, reader: asyncio.StreamReader) -> AsyncIterator[h11.Event]:
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            wire.receive_data(await reader.read(65536))
        elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
            return
        else:
            assert isinstance(event, h11.Event)
            yield event


def lines(*chunks: Any, done: bool = True) -> list[bytes]:
    """Unnamed events as the chat and completions endpoints send them."""
    sent = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return [*sent, b"data: [DONE]\n\n"] if done else sent


USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


def chat_body(content: str | None, *, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion as vLLM writes it."""
    said = {"role": "assistant", "content": content, "refusal": None, "annotations": None} | message
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": finish, "stop_reason": None}
    head = {"id": "chatcmpl-upstream", "object": "chat.completion", "created": 1_700_000_000}
    tail = {"service_tier": None, "system_fingerprint": "vllm-0.32.0-aabbccdd", "usage": USAGE}
    return head | {"model": "small-chat", "choices": [choice]} | tail


def chat_chunk(delta: dict[str, Any], *, index: int = 0, **choice: Any) -> dict[str, Any]:
    """One chunk of a streamed chat completion."""
    head = {"id": "chatcmpl-upstream", "object": "chat.completion.chunk", "created": 1_700_000_000}
    said = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
    return head | {"model": "small-chat", "choices": [said | choice]}


def chat_stream(*parts: str, finish: str = "stop", usage: bool = False, field: str = "content") -> list[bytes]:
    """The events of a streamed chat completion."""
    chunks = [
        chat_chunk({"role": "assistant", "content": ""}),
        *(chat_chunk({field: part}) for part in parts),
        chat_chunk({}, finish_reason=finish, stop_reason=None),
    ]
    counted = [chat_chunk({}) | {"choices": [], "usage": USAGE}] if usage else []
    return lines(*chunks, *counted)
