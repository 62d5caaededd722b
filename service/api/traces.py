"""A span for each request, in the trace that its caller names (W3C Trace Context)."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.telemetry.tracing import begin
from service.upstream.answer import PATHS

CACHED = frozenset(PATHS.values())


class Traced:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        given = {"http.request.method": method, "semcache.request_id": scope["state"]["request_id"]}
        span = begin(method, given, kind="SERVER", caller=scope["headers"])

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                span.set({"http.response.status_code": status})
                if status >= 500:
                    span.fail(str(status))
            await send(message)

        try:
            with span.active():
                await self._app(scope, receive, watched)
        finally:
            if (route := _route(scope)) is not None:
                span.rename(f"{method} {route}")
                span.set({"http.route": route})
            span.end()


def _route(scope: Scope) -> str | None:
    """The template of the path, of which there are few."""
    if scope["path"] in CACHED:
        return str(scope["path"])
    return getattr(scope.get("route"), "path", None)


__all__ = ["Traced"]
