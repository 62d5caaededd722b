"""Who may ask while no API key exists: this machine alone, and no web page that is open on it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.openai_errors import openai_error
from service.api.paths import is_proxied
from service.api.problems import problem
from service.cache.directory import keys_exist
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.json_text import dump


class LocalOrigins:
    """ASGI middleware: until the first key is made, Host and Origin must be of this machine.

    Else any web page could read and flush the cache, by a form or by a name that its owner points at loopback.
    """

    def __init__(self, app: ASGIApp, runtime: Runtime) -> None:
        self._app, self._runtime = app, runtime
        self._keys_exist = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if scope["type"] == "http" and scope["path"].startswith("/v1/") and not _is_local(scope["headers"]):
            try:
                await self._want_keys()
            except SemcacheError as error:
                answer = _refusal(error, Request(scope))
        await answer(scope, receive, send)

    async def _want_keys(self) -> None:
        """Asked until it is so, since keys are never removed."""
        self._keys_exist = self._keys_exist or await keys_exist(self._runtime)
        if not self._keys_exist:
            raise SemcacheError(
                Code.FORBIDDEN_ORIGIN,
                "while there is no API key, Host and Origin must name this machine (localhost or 127.0.0.1); "
                "for others make a key: pgsemcache keys create --tenant NAME",
            )


def is_loopback(host: str | None) -> bool:
    """Whether a name or an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def _is_local(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    hosts = [f"//{value.decode('latin-1')}" for name, value in headers if name == b"host"]
    origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
    return bool(hosts) and all(_names_loopback(url) for url in hosts + origins)


@lru_cache(maxsize=256)
def _names_loopback(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname)
    except ValueError:
        return False


def _refusal(error: SemcacheError, request: Request) -> Response:
    if not is_proxied(request.url.path):
        return problem(error, request)
    status, shown = openai_error(error)
    return Response(dump(shown), status, media_type="application/json")


__all__ = ["LocalOrigins", "is_loopback"]
