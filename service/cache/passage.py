"""Requests that are not cached: passed to the model server, both ways as they come."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from urllib.parse import unquote

from service.cache.call import Reply, Told, parse_body
from service.cache.front import admit
from service.cache.runtime import Runtime
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
    model = _model(path, content)
    runtime.upstream.require(model)
    await admit(runtime, key)
    response = await runtime.upstream.send(method, path, query=query, headers=headers, content=content, model=model)
    return Reply(response.status, response.headers, response.chunks(), told)


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
