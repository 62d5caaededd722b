"""Gives every answer an `x-request-id`: the caller's own where it sent a sensible one."""

from __future__ import annotations

import re
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.telemetry.logs import request_id

HEADER = b"x-request-id"
_SENSIBLE = re.compile(rb"[A-Za-z0-9_.:-]{1,128}")


class RequestId:
    """ASGI middleware. The id is in `scope["state"]["request_id"]` and in logs too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == HEADER), b"")
        own = given if _SENSIBLE.fullmatch(given) else uuid4().hex.encode()
        scope.setdefault("state", {})["request_id"] = own.decode()
        request_id.set(own.decode())

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), (HEADER, own)]
            await send(message)

        await self._app(scope, receive, named)


__all__ = ["RequestId"]
