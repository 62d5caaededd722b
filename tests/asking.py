"""Asking the proxy as a client of the OpenAI API does, in a cache of the test's own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import uuid4

import httpx
from running import Service

from service.cache.flights import Flight
from service.upstream.sse import Parser
from tests.fakes.upstream import FakeUpstream, Reply, chat_body, chat_stream

CHAT = "/v1/chat/completions"
STEADY = 20.0  # seconds of a replica's lease: one that stalls for a moment is still known to the others
PATIENCE = 10.0  # seconds for what happens in the background


def chat(text: str, **fields: Any) -> dict[str, Any]:
    """A chat request of one user message, greedy unless said otherwise."""
    return {"model": "small-chat", "temperature": 0, "messages": [{"role": "user", "content": text}]} | fields


@dataclass
class Answered:
    """What came back. `events` are those of a stream."""

    status: int
    headers: httpx.Headers
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def streamed(self) -> bool:
        return self.headers["content-type"].startswith("text/event-stream")

    @property
    def events(self) -> list[str]:
        return [event.data for event in Parser().feed(self.raw)]

    @property
    def chunks(self) -> list[Any]:
        return [json.loads(data) for data in self.events if data != "[DONE]"]

    @property
    def text(self) -> str | None:
        """What the model said, from a body or from a stream."""
        if self.streamed:
            deltas = [c["choices"][0]["delta"] for c in self.chunks if c.get("choices")]
            return "".join(delta.get("content") or "" for delta in deltas)
        said: str | None = self.json["choices"][0]["message"]["content"]
        return said

    @property
    def cache(self) -> str | None:
        return self.headers.get("x-cache")

    @property
    def reason(self) -> str | None:
        return self.headers.get("x-cache-reason")


@dataclass
class Asker:
    """A client of one service. Texts that it asks are its own, so that tests can share a service."""

    base: str
    cache: str = "default"
    key: str | None = None
    http: httpx.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.AsyncClient(base_url=self.base, timeout=30)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    def headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        own = {"content-type": "application/json", "x-cache-namespace": self.cache}
        return own | ({"authorization": f"Bearer {self.key}"} if self.key else {}) | (more or {})

    async def new_cache(self, **policy: Any) -> None:
        """Make a cache and use it from here on."""
        self.cache = f"cache-{uuid4().hex[:12]}"
        made = await self.http.post("/v1/caches", json={"name": self.cache, "policy": policy}, headers=self.headers())
        assert made.status_code == 201, made.text

    async def ask(self, body: Any, *, path: str = CHAT, **headers: str) -> Answered:
        """Header names have _ for -."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        got = await self.http.post(path, content=content, headers=self.headers(named))
        return Answered(got.status_code, got.headers, got.content)

    async def stored(self, body: Any, *, path: str = CHAT, **headers: str) -> Answered:
        """Ask until the stored answer comes: it may be stored just after it was given."""
        begun = time.monotonic()
        while time.monotonic() < begun + PATIENCE:
            got = await self.ask(body, path=path, **headers)
            assert got.status == 200, got.raw
            if got.cache in ("HIT", "SEMANTIC-HIT"):
                return got
        raise AssertionError(f"not stored: {got.cache} {got.reason}")

    @asynccontextmanager
    async def open(self, body: Any, *, path: str = CHAT, **headers: str) -> AsyncIterator[httpx.Response]:
        """A response whose body is still to be read."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.stream("POST", path, json=body, headers=self.headers(named)) as response:
            yield response


def says(upstream: FakeUpstream, match: str, *texts: str, **options: Any) -> None:
    """The model's answers to requests that hold `match`, as bodies; the last one stays."""
    upstream.on(match, *(Reply(json=chat_body(text, **options)) for text in texts))


def streams(upstream: FakeUpstream, match: str, *parts: str, **options: Any) -> None:
    """The model's streamed answer to requests that hold `match`, with the token counts that the cache asks for."""
    upstream.on(match, Reply(chunks=chat_stream(*parts, usage=True, **options)))


def asked(upstream: FakeUpstream, text: str) -> list[Any]:
    """The requests that reached the model server with this text."""
    return [call for call in upstream.calls if text.encode() in call.body]


async def reached(upstream: FakeUpstream, text: str, calls: int = 1) -> None:
    """Return when the model server has got so many requests with this text."""
    async with asyncio.timeout(20):
        while len(asked(upstream, text)) < calls:
            upstream.arrived.clear()
            await upstream.arrived.wait()


async def attended(service: Service, requests: int) -> None:
    """Return when so many requests to a service wait for the model, by calls of their own or another's."""
    flights = service.runtime.flights._flights
    async with asyncio.timeout(20):
        while sum(map(_waiting, list(flights.values()))) < requests:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


def _waiting(flight: Flight) -> int:
    if not flight.head._known.is_set():
        return len(flight.head._known._waiters)
    return len(flight.answer._known._waiters) + len(flight.log._places)
