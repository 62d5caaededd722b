"""The model server over HTTP: requests and answers pass unbuffered, byte for byte."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from types import TracebackType
from typing import Self
from urllib.parse import unquote

import httpx

from service.errors import Code, SemcacheError
from service.settings import Settings, UpstreamTarget
from service.upstream.headers import Headers, answer_headers, request_headers

# Below the keep-alive of common servers (uvicorn 5 s, gunicorn 2 s): a request is not sent into a closing
# connection.
_KEEPALIVE = 1.0
_SEPARATORS = re.compile(r"[/\\]")


class UpstreamError(SemcacheError):
    """The model server gave no answer, or not all of it: `code` says which status that is for the caller."""


class UpstreamResponse:
    """An answer whose headers are here and whose body is still to come. Close it, or read it to its end."""

    def __init__(self, response: httpx.Response, read_timeout: float) -> None:
        self._response = response
        self._read_timeout = read_timeout
        self.status = response.status_code
        self.headers: Headers = answer_headers(response.headers.raw)

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case; "" where there is none."""
        kind: str = self._response.headers.get("content-type", "")
        return kind.partition(";")[0].strip().lower()

    @property
    def streams(self) -> bool:
        """Whether the body is server-sent events."""
        return self.media_type == "text/event-stream"

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises UpstreamError where the connection breaks or falls silent."""
        source = self._response.aiter_bytes()
        try:
            while True:
                async with asyncio.timeout(self._read_timeout):
                    chunk = await anext(source, None)
                if chunk is None:
                    return
                yield chunk
        except TimeoutError:
            rule = f"nothing came for {self._read_timeout:g} s (SEMCACHE_UPSTREAM_READ_TIMEOUT)"
            raise UpstreamError(Code.UPSTREAM_TIMEOUT, f"The model server fell silent: {rule}.") from None
        except httpx.HTTPError as error:
            detail = f"The model server broke off its answer ({type(error).__name__})."
            raise UpstreamError(Code.UPSTREAM_BROKEN, detail) from error
        finally:
            await self.aclose()

    async def read(self) -> bytes:
        """The whole body. Raises as `chunks` does."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def aclose(self) -> None:
        """Give up the rest; the model server sees the connection close and stops writing."""
        await self._response.aclose()


class UpstreamClient:
    """The model servers of the settings behind one pool of connections. Close it when done."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        default = settings.upstream
        self._default = UpstreamTarget(url=default, key=settings.upstream_key) if default else None
        wait = settings.upstream_connect_timeout
        self._http = httpx.AsyncClient(
            # Silence is bounded below, since the first byte may take longer than any other.
            timeout=httpx.Timeout(None, connect=wait, pool=settings.upstream_pool_timeout),
            limits=httpx.Limits(
                max_connections=settings.upstream_max_connections,
                max_keepalive_connections=settings.upstream_max_connections,
                keepalive_expiry=_KEEPALIVE,
            ),
            headers={"user-agent": "pgsemcache"},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    def target(self, model: str | None = None) -> UpstreamTarget:
        """The model server for `model`. Raises UpstreamError where none is set up."""
        found = self._settings.upstreams.get(model or "") or self._default
        if found is None:
            mend = "set SEMCACHE_UPSTREAM, or name the model in SEMCACHE_UPSTREAMS"
            raise UpstreamError(Code.NO_UPSTREAM, f"No model server is set up for this request: {mend}.")
        return found

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
        target = self.target(model)
        url = _base(target.url) + _below_v1(path) + (f"?{query}" if query else "")
        return await self._send(method, url, target, list(headers), content)

    async def ask(
        self, method: str, path: str, *, content: bytes | None = None, model: str | None = None
    ) -> UpstreamResponse:
        """Send a request of our own to a path of the server's root, as /version. Raises UpstreamError."""
        target = self.target(model)
        kind = [(b"content-type", b"application/json")] if content is not None else []
        return await self._send(method, _base(target.url).removesuffix("/v1") + path, target, kind, content)

    async def _send(
        self,
        method: str,
        url: str,
        target: UpstreamTarget,
        headers: Headers,
        content: bytes | AsyncIterator[bytes] | None,
    ) -> UpstreamResponse:
        forward = self._settings.upstream_forward_authorization
        key = target.key.get_secret_value() if target.key else None
        passed = request_headers(headers, key=key, forward_authorization=forward)
        if content is not None and not isinstance(content, bytes):
            # A streamed body keeps its announced length; without one it goes in chunks.
            passed += [pair for pair in headers if pair[0].lower() == b"content-length"]
        wait = self._settings.upstream_first_byte_timeout
        try:
            request = self._http.build_request(method, url, headers=passed, content=content)
            async with asyncio.timeout(wait):
                response = await self._http.send(request, stream=True)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise UpstreamError(Code.UPSTREAM_TIMEOUT, _too_slow(error, self._settings)) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            detail = f"The model server gave no answer ({type(error).__name__})."
            raise UpstreamError(Code.UPSTREAM_UNREACHABLE, detail) from error
        return UpstreamResponse(response, self._settings.upstream_read_timeout)


def _too_slow(error: Exception, settings: Settings) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        wait, name = settings.upstream_connect_timeout, "CONNECT"
    elif isinstance(error, httpx.PoolTimeout):
        wait, name = settings.upstream_pool_timeout, "POOL"
    else:
        wait, name = settings.upstream_first_byte_timeout, "FIRST_BYTE"
    return f"The model server did not answer within {wait:g} s (SEMCACHE_UPSTREAM_{name}_TIMEOUT)."


def _base(url: str) -> str:
    base = url.rstrip("/")
    return base if httpx.URL(base).path.strip("/") else f"{base}/v1"


def _below_v1(path: str) -> str:
    decoded = unquote(unquote(path))
    if not decoded.startswith("/v1/") or {".", ".."} & set(_SEPARATORS.split(decoded)):
        raise UpstreamError(Code.ROUTE_NOT_FOUND, "Only paths under /v1 are passed on, without . and .. segments.")
    return path.removeprefix("/v1")


__all__ = ["UpstreamClient", "UpstreamError", "UpstreamResponse"]
