"""Everything under /v1 that is not the data API's: the OpenAI API, answered from the cache or by the model server.

By ASGI alone, since answers of model servers must pass as they come, with any method and any header.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.controls import parse_controls
from service.api.headers import answer_headers
from service.api.inbound import Inbound
from service.api.openai_errors import openai_error
from service.api.paths import is_proxied
from service.cache.call import Call, Reply, Told, UnansweredError, parse_body, without
from service.cache.complete import complete
from service.cache.passage import pass_through, takes_model_from_body
from service.cache.runtime import Runtime
from service.ending import end
from service.errors import Code, SemcacheError
from service.json_text import dump, dumps
from service.telemetry.tracing import current
from service.upstream.answer import PATHS

_CACHED = {path: endpoint for endpoint, path in PATHS.items()}

logger = logging.getLogger("semcache.proxy")


class Proxy:
    """ASGI middleware, since it has all paths under /v1 but the data API's, and routing costs as much as a lookup."""

    def __init__(self, app: ASGIApp, runtime: Runtime) -> None:
        self._app, self._runtime = app, runtime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_proxied(scope["path"]):
            await self._attend(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _attend(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, until it is answered or its client has left."""
        inbound = Inbound(receive)
        tasks = [asyncio.create_task(self._answer(scope, inbound, send)), asyncio.create_task(inbound.gone())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            logger.info("an answer was broken off, since the service ends")  # uvicorn would log it as a fault
        finally:
            await end(tasks)

    async def _answer(self, scope: Scope, inbound: Inbound, send: Send) -> None:
        try:
            reply = await self._reply(scope, inbound)
        except UnansweredError as failure:
            reply = _error(failure.error, failure.told)
        except SemcacheError as error:
            reply = _error(error, Told("ERROR" if error.code.value.status >= 500 else "BYPASS", error.code.slug))
        except ClientDisconnect:
            return
        except Exception:
            logger.exception("a request failed")
            reply = _error(
                SemcacheError(Code.INTERNAL, "the service failed; its log says how"), Told("ERROR", "internal")
            )
        try:
            await _send(reply, send)
        except SemcacheError:
            pass  # the model server's answer broke off, and so does ours: the connection tells
        except Exception:
            logger.exception("an answer broke off")

    async def _reply(self, scope: Scope, inbound: Inbound) -> Reply:
        settings = self._runtime.settings
        path = _path(scope)
        endpoint = _CACHED.get(path) if scope["method"] == "POST" else None
        if endpoint is None:
            return await self._pass(scope, inbound, Told("BYPASS", "route"))
        raw = await inbound.read(settings.max_body_bytes)
        if raw is None:
            return await self._pass(scope, inbound, Told("BYPASS", Code.BODY_TOO_LARGE.slug))
        body = parse_body(raw)
        controlled = parse_controls(scope["headers"], body, max_tags=settings.max_tags)
        call = Call(
            endpoint=endpoint,
            path=path,
            query=scope["query_string"].decode("latin-1"),
            headers=controlled.headers,
            raw=without(raw, controlled.removed),
            body=None if body is None else controlled.body,
            controls=controlled.controls,
            key=_key(scope),
        )
        if settings.trace_prompts:
            current().set({"gen_ai.input.messages": dumps(call.fields.get("messages") or call.fields.get("input"))})
        return await complete(self._runtime, call)

    async def _pass(self, scope: Scope, inbound: Inbound, told: Told) -> Reply:
        headers = parse_controls(scope["headers"]).headers
        return await pass_through(
            self._runtime,
            method=scope["method"],
            path=_path(scope),
            query=scope["query_string"].decode("latin-1"),
            headers=headers,
            content=await self._content(headers, inbound),
            key=_key(scope),
            told=told,
        )

    async def _content(
        self, headers: list[tuple[bytes, bytes]], inbound: Inbound
    ) -> bytes | AsyncIterator[bytes] | None:
        names = {name for name, _ in headers}
        if not names & {b"content-length", b"transfer-encoding"}:
            await inbound.read(0)
            return None
        is_json = any(name == b"content-type" and b"json" in value for name, value in headers)
        if is_json and takes_model_from_body(self._runtime):
            read = await inbound.read(self._runtime.settings.max_body_bytes)
            return inbound.stream() if read is None else read
        return inbound.stream()


async def _send(reply: Reply, send: Send) -> None:
    told = reply.told
    current().set(
        {"semcache.outcome": told.status, "semcache.reason": told.reason, "semcache.similarity": told.similarity}
    )
    headers = answer_headers(reply.headers, reply.told)
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if isinstance(reply.body, bytes):
        await send({"type": "http.response.body", "body": reply.body})
        return
    async with aclosing(reply.body) as body:
        async for chunk in body:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _error(error: SemcacheError, told: Told) -> Reply:
    status, shown = openai_error(error)
    body = dump(shown)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if error.code is Code.NOT_CACHED:
        headers.append((b"x-should-retry", b"false"))
    if status == 503:
        headers.append((b"retry-after", b"1"))
    return Reply(status, headers, body, told)


def _path(scope: Scope) -> str:
    """Percent-encoded, as it came."""
    return bytes(scope["raw_path"]).decode("latin-1")


def _key(scope: Scope) -> str | None:
    given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    scheme, _, key = given.decode("latin-1").partition(" ")
    return key.strip() or None if scheme.lower() == "bearer" else None


__all__ = ["Proxy"]
