"""The model server over HTTP: requests and answers pass unbuffered, byte for byte.

aiohttp, since its client takes a third of httpx's time, which every miss pays.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from service.errors import Code, SemcacheError
from service.settings import Settings, UpstreamTarget
from service.telemetry.tracing import passed_on
from service.upstream.headers import Headers, answer_headers, request_headers

# Below the keep-alive of common servers (uvicorn 5 s, gunicorn 2 s): a request is not sent into a closing
# connection.
_KEEPALIVE = 1.0
_LONGEST_HEADER = 2**16
_SEPARATORS = re.compile(r"[/\\]")


class UpstreamError(SemcacheError):
    """The model server gave no answer, or not all of it: `code` says which status that is for the caller."""


class UpstreamResponse:
    """An answer whose headers are here and whose body is still to come. Close it, or read it to its end."""

    def __init__(self, response: aiohttp.ClientResponse, read_timeout: float) -> None:
        self._response = response
        self._read_timeout = read_timeout
        self.status = response.status
        self.headers: Headers = answer_headers(response.raw_headers)

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case; "" where there is none."""
        kind = self._response.headers.get("content-type", "")
        return kind.partition(";")[0].strip().lower()

    @property
    def streams(self) -> bool:
        """Whether the body is server-sent events."""
        return self.media_type == "text/event-stream"

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises UpstreamError where the connection breaks or falls silent."""
        source = self._response.content
        try:
            while True:
                async with asyncio.timeout(self._read_timeout):
                    chunk = await source.readany()
                if not chunk:
                    return
                yield chunk
        except TimeoutError:
            rule = f"nothing came for {self._read_timeout:g} s (SEMCACHE_UPSTREAM_READ_TIMEOUT)"
            raise UpstreamError(Code.UPSTREAM_TIMEOUT, f"The model server fell silent: {rule}.") from None
        except aiohttp.ClientError as error:
            detail = f"The model server broke off its answer ({type(error).__name__})."
            raise UpstreamError(Code.UPSTREAM_BROKEN, detail) from error
        finally:
            self.close()

    async def read(self) -> bytes:
        """The whole body. Raises as `chunks` does."""
        return b"".join([chunk async for chunk in self.chunks()])

    def close(self) -> None:
        """Give up the rest; the model server sees the connection close and stops writing."""
        self._response.close()


@dataclass(frozen=True, slots=True)
class _Server:
    """Where a model server is: its base ends in /v1; proxy: of the environment, as HTTPS_PROXY."""

    base: str
    key: str | None
    proxy: str | None

    @classmethod
    def of(cls, target: UpstreamTarget) -> Self:
        base, parts = target.url.rstrip("/"), urlsplit(target.url)
        proxy = None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
        key = target.key.get_secret_value() if target.key else None
        return cls(base if parts.path.strip("/") else f"{base}/v1", key, proxy)


class UpstreamClient:
    """The model servers of the settings behind one pool of connections. Close it when done."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        default = settings.upstream
        self._default = _Server.of(UpstreamTarget(url=default, key=settings.upstream_key)) if default else None
        self._by_model = {model: _Server.of(target) for model, target in settings.upstreams.items()}

    @cached_property
    def _http(self) -> aiohttp.ClientSession:
        """Made when it is first used, since it belongs to the running event loop."""
        wait, more = self._settings.upstream_connect_timeout, self._settings.upstream_pool_timeout
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._settings.upstream_max_connections, keepalive_timeout=_KEEPALIVE),
            # Silence is bounded below, since the first byte may take longer than any other.
            timeout=aiohttp.ClientTimeout(total=None, connect=wait + more, sock_connect=wait),
            headers={"user-agent": "pgsemcache"},
            skip_auto_headers=("content-type",),
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        if "_http" in vars(self):
            await self._http.close()

    def require(self, model: str | None) -> None:
        """Raises UpstreamError where no model server is set up for `model`."""
        self._server(model)

    @property
    def models(self) -> list[str | None]:
        """For each model server one name by which it is asked; None for the default one."""
        default: list[str | None] = [None] if self._default else []
        by_server = {server: name for name, server in self._by_model.items() if server != self._default}
        return default + list(by_server.values())

    def forwards_authorization(self, model: str | None) -> bool:
        """Whether the server of `model` wants its callers' keys, so that it may show nothing to a request of ours."""
        return self._settings.upstream_forward_authorization and self._server(model).key is None

    def serves(self, name: str | None, model: str) -> bool:
        """Whether requests for `model` go to the server that is asked by `name`."""
        return self._server(name) == (self._by_model.get(model) or self._default)

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        headers: Iterable[tuple[bytes, bytes]] = (),
        content: bytes | AsyncIterator[bytes] | None = None,
        model: str | None = None,
    ) -> UpstreamResponse:
        """Send a request and wait for the headers of its answer, whatever its status.

        `path` begins with /v1 and is percent-encoded, as `query` is: both pass as they are. A path outside
        /v1, where model servers have their unguarded routes, is not found. Raises UpstreamError.
        """
        server = self._server(model)
        url = server.base + _below_v1(path) + (f"?{query}" if query else "")
        return await self._send(method, url, server, list(headers), content)

    async def ask(
        self, method: str, path: str, *, content: bytes | None = None, model: str | None = None
    ) -> UpstreamResponse:
        """Send a request of our own to a path of the server's root, as /version. Raises UpstreamError."""
        server = self._server(model)
        kind = [(b"content-type", b"application/json")] if content is not None else []
        return await self._send(method, server.base.removesuffix("/v1") + path, server, kind, content)

    def _server(self, model: str | None) -> _Server:
        found = self._by_model.get(model or "") or self._default
        if found is None:
            mend = "set SEMCACHE_UPSTREAM, or name the model in SEMCACHE_UPSTREAMS"
            raise UpstreamError(Code.NO_UPSTREAM, f"No model server is set up for this request: {mend}.")
        return found

    async def _send(
        self,
        method: str,
        url: str,
        server: _Server,
        headers: Headers,
        content: bytes | AsyncIterator[bytes] | None,
    ) -> UpstreamResponse:
        forward = self._settings.upstream_forward_authorization
        passed = request_headers(headers, key=server.key, forward_authorization=forward)
        if content is not None and not isinstance(content, bytes):
            # A streamed body keeps its announced length; without one it goes in chunks.
            passed += [pair for pair in headers if pair[0].lower() == b"content-length"]
        passed = passed_on(passed)
        try:
            async with asyncio.timeout(self._settings.upstream_first_byte_timeout):
                response = await self._http.request(
                    method,
                    URL(url, encoded=True),
                    headers=[(name.decode("latin-1"), _decoded(value)) for name, value in passed],
                    data=BytesIO(content) if isinstance(content, bytes) else content,
                    allow_redirects=False,
                    proxy=server.proxy,
                )
        except TimeoutError as error:
            raise UpstreamError(Code.UPSTREAM_TIMEOUT, _too_slow(error, self._settings)) from error
        except (aiohttp.ClientError, ValueError) as error:
            detail = f"The model server gave no answer ({type(error).__name__})."
            raise UpstreamError(Code.UPSTREAM_UNREACHABLE, detail) from error
        return UpstreamResponse(response, self._settings.upstream_read_timeout)


def _too_slow(error: Exception, settings: Settings) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        waits = {"CONNECT": settings.upstream_connect_timeout, "POOL": settings.upstream_pool_timeout}
    else:
        waits = {"FIRST_BYTE": settings.upstream_first_byte_timeout}
    rules = " and ".join(f"{wait:g} s (SEMCACHE_UPSTREAM_{name}_TIMEOUT)" for name, wait in waits.items())
    return f"The model server did not answer within {rules}."


def _decoded(value: bytes) -> str:
    """aiohttp writes UTF-8: a value that is none goes as its Latin-1 characters."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _below_v1(path: str) -> str:
    decoded = unquote(unquote(path))
    if not decoded.startswith("/v1/") or {".", ".."} & set(_SEPARATORS.split(decoded)):
        raise UpstreamError(Code.ROUTE_NOT_FOUND, "Only paths under /v1 are passed on, without . and .. segments.")
    return path.removeprefix("/v1")


__all__ = ["UpstreamClient", "UpstreamError", "UpstreamResponse"]
