"""Requests that are not cached: passed to the model server, both ways as they come."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote

from service.cache.call import Reply, Told, parse_body
from service.cache.front import admit
from service.cache.runtime import Runtime
from service.errors import Code
from service.json_text import dump
from service.upstream.client import UpstreamError
from service.upstream.headers import Headers

_ONE_MODEL = re.compile(r"/v1/models/([^/]+)")


async def pass_through(
    runtime: Runtime,
    *,
    method: str,
    path: str,
    query: str,
    headers: Headers,
    content: bytes | AsyncIterator[bytes] | None,
    key: str | None,
    told: Told,
) -> Reply:
    """Send a request on. path: percent-encoded, begins with /v1.

    Raises: SemcacheError where the model server gives no answer, or nobody can say who asks.
    """
    if path == "/v1/models" and method == "GET" and len(runtime.upstream.models) > 1:
        return await _list_models(runtime, query=query, headers=headers, key=key, told=told)
    model = _model(path, content)
    runtime.upstream.require(model)
    await admit(runtime, key)
    response = await runtime.upstream.send(method, path, query=query, headers=headers, content=content, model=model)
    return Reply(response.status, response.headers, response.chunks(), told)


async def _list_models(runtime: Runtime, *, query: str, headers: Headers, key: str | None, told: Told) -> Reply:
    """The lists of all model servers as one: of each the models whose requests go to it. One that fails is left out.

    Raises: SemcacheError where all fail, or nobody can say who asks.
    """
    await admit(runtime, key)
    names = runtime.upstream.models
    lists = await asyncio.gather(*(_listed(runtime, name, query, headers) for name in names), return_exceptions=True)
    shown = [found for found in lists if not isinstance(found, BaseException)]
    if not shown:
        raise next(failure for failure in lists if isinstance(failure, BaseException))
    body = dump({"object": "list", "data": [card for cards in shown for card in cards]})
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    return Reply(200, kind, body, told)


async def _listed(runtime: Runtime, name: str | None, query: str, headers: Headers) -> list[dict[str, Any]]:
    response = await runtime.upstream.send("GET", "/v1/models", query=query, headers=headers, model=name)
    shown = parse_body(await response.read())
    if response.status != 200 or shown is None:
        detail = f"A model server answered {response.status} to /v1/models."
        raise UpstreamError(Code.UPSTREAM_UNREACHABLE, detail)
    return [card for card in shown.get("data") or () if runtime.upstream.serves(name, card.get("id"))]


def _model(path: str, content: bytes | AsyncIterator[bytes] | None) -> str | None:
    """The model that a request names, since it says which server is meant."""
    named = _ONE_MODEL.fullmatch(path)
    if named:
        return unquote(named[1])
    body = parse_body(content) if isinstance(content, bytes) else None
    model = body.get("model") if body else None
    return model if isinstance(model, str) else None


def takes_model_from_body(runtime: Runtime) -> bool:
    """Whether a JSON body must be read to know which model server it is for."""
    return bool(runtime.settings.upstreams)


__all__ = ["pass_through", "takes_model_from_body"]
