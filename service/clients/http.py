"""One cache of a running service, as an application speaks to it: search, store, flush, each blocking and async."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from service.clients.question import Question
from service.json_text import dumps

logger = logging.getLogger("semcache.clients")


class CacheClient:
    """base_url: the service's, as http://127.0.0.1:8080. threshold: cosine, 0 to 1; it can only raise the cache's own.

    timeout: seconds for the connection, and for each wait for the service. One client serves all threads and event
    loops. Raises httpx.HTTPError where the service does not answer or refuses.
    """

    def __init__(
        self,
        base_url: str,
        cache: str = "default",
        *,
        api_key: str | None = None,
        threshold: float | None = None,
        timeout: float = 1.0,
    ) -> None:
        self._base = f"{base_url.rstrip('/')}/v1/caches/{quote(cache, safe='')}"
        self._headers = {"content-type": "application/json"}
        if api_key is not None:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._threshold = threshold
        self._timeout = timeout
        self._http = httpx.Client(base_url=self._base, headers=self._headers, timeout=timeout)
        # Connections belong to the event loop that opened them.
        self._by_loop: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    def search(self, question: Question) -> str | None:
        """The answer that may be served; None on a miss."""
        return _served(self._http.post("/entries/search", content=self._search(question)))

    async def asearch(self, question: Question) -> str | None:
        return _served(await self._here().post("/entries/search", content=self._search(question)))

    def store(self, question: Question, response: str, *, ttl: float | None = None) -> None:
        """ttl: seconds; None leaves it to the cache's policy. When this returns, every replica serves the answer."""
        self._http.post("/entries", content=_entry(question, response, ttl)).raise_for_status()

    async def astore(self, question: Question, response: str, *, ttl: float | None = None) -> None:
        (await self._here().post("/entries", content=_entry(question, response, ttl))).raise_for_status()

    def flush(self) -> None:
        """When this returns, no replica serves anything that was stored before."""
        self._http.post("/flush").raise_for_status()

    async def aflush(self) -> None:
        (await self._here().post("/flush")).raise_for_status()

    async def astats(self) -> dict[str, Any]:
        """The cache's figures; also the way to see whether it is there and lets this client in."""
        return dict((await self._here().get("/stats")).raise_for_status().json())

    def close(self) -> None:
        self._http.close()

    async def aclose(self) -> None:
        """Close the client, with the connections of this event loop and of threads."""
        self.close()
        if (here := self._by_loop.pop(asyncio.get_running_loop(), None)) is not None:
            await here.aclose()

    def _here(self) -> httpx.AsyncClient:
        if self._http.is_closed:
            raise RuntimeError("the client of the cache is closed")
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            for ended in [known for known in self._by_loop if known.is_closed()]:
                self._by_loop.pop(ended, None)
            self._by_loop[loop] = httpx.AsyncClient(base_url=self._base, headers=self._headers, timeout=self._timeout)
        return self._by_loop[loop]

    def _search(self, question: Question) -> str:
        search = {"prompt": question.prompt, "scope": question.scope, "similarityThreshold": self._threshold}
        return dumps(search)


@contextmanager
def failing_open(doing: str) -> Iterator[None]:
    """Log whatever goes wrong, without any text of the request, and go on: the model can be asked without a cache."""
    try:
        yield
    except Exception as error:  # whatever it is: a cache must not break the call that it was to speed up
        logger.warning("%s failed (%s); the call goes on without the cache", doing, _cause(error))


def _entry(question: Question, response: str, ttl: float | None) -> str:
    entry = {"prompt": question.prompt, "response": response, "scope": question.scope}
    return dumps(entry if ttl is None else entry | {"ttlMillis": round(ttl * 1000)})


def _served(found: httpx.Response) -> str | None:
    hits = found.raise_for_status().json()["data"]
    return str(hits[0]["response"]) if hits else None


def _cause(error: Exception) -> str:
    if isinstance(error, httpx.TransportError | TypeError):
        return f"{type(error).__name__}: {error}"
    if not isinstance(error, httpx.HTTPStatusError):
        return type(error).__name__
    answer = error.response
    is_problem = answer.headers.get("content-type") == "application/problem+json"
    return f"status {answer.status_code}" + (f", {answer.json()['code']}" if is_problem else "")


__all__ = ["CacheClient", "failing_open"]
