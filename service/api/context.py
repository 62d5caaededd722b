"""What a route needs to know of a request: the process's parts, who asks, which cache."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

from service.cache.directory import OpenCache, authenticate, open_cache
from service.cache.runtime import Runtime
from service.json_text import dumps
from service.store.tenants import Tenant

bearer = HTTPBearer(auto_error=False, description="an API key; not needed on loopback until the first key is made")


def runtime_of(request: Request) -> Runtime:
    return cast("Runtime", request.app.state.runtime)


async def _tenant(request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]) -> Tenant:
    return await authenticate(runtime_of(request), given.credentials if given else None)


TenantOf = Annotated[Tenant, Depends(_tenant)]
RuntimeOf = Annotated[Runtime, Depends(runtime_of)]


async def _cache(request: Request, cache_id: str, tenant: TenantOf) -> OpenCache:
    return await open_cache(runtime_of(request), tenant, cache_id)


CacheOf = Annotated[OpenCache, Depends(_cache)]


def respond(body: BaseModel, status: int = 200) -> Response:
    """A body as JSON that can hold any text."""
    return Response(dumps(body.model_dump(mode="json", by_alias=True)), status, media_type="application/json")


__all__ = ["CacheOf", "RuntimeOf", "TenantOf", "respond", "runtime_of"]
