"""What a route needs to know of a request: the process's parts, who asks, which cache."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ValidationError

from service.api.problems import UNREADABLE, read_body_validation, read_validation
from service.cache.directory import OpenCache, authenticate, open_cache
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.json_text import dump
from service.store.tenants import Tenant

B = TypeVar("B", bound=BaseModel)

bearer = HTTPBearer(auto_error=False, description="an API key; not needed on loopback until the first key is made")


Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]


def runtime_of(request: Request) -> Runtime:
    return cast("Runtime", request.app.state.runtime)


# Dependencies are coroutines although some await nothing: FastAPI runs plain functions in a thread.


async def _runtime(request: Request) -> Runtime:
    return runtime_of(request)


async def _tenant(request: Request, given: Credentials) -> Tenant:
    return await authenticate(runtime_of(request), given.credentials if given else None)


async def _cache(request: Request, cache_id: str, given: Credentials) -> OpenCache:
    return await open_cache(runtime_of(request), await _tenant(request, given), cache_id)


RuntimeOf = Annotated[Runtime, Depends(_runtime)]
TenantOf = Annotated[Tenant, Depends(_tenant)]
CacheOf = Annotated[OpenCache, Depends(_cache)]


async def visited_cache(request: Request, cache_id: str) -> OpenCache:
    """As the dependency CacheOf, for hot routes: solving dependencies costs more than a lookup in memory."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    tenant = await authenticate(runtime_of(request), key if scheme.lower() == "bearer" else None)
    return await open_cache(runtime_of(request), tenant, cache_id)


async def read_body(request: Request, model: type[B]) -> B:
    """The body of a hot route. Raises: SemcacheError with MALFORMED_BODY or INVALID_DATA."""
    if not _says_json(request):
        raise read_validation([{"type": "model_type", "loc": ("body",), "msg": ""}])
    try:
        return model.model_validate(await request.json())
    except ValidationError as error:
        raise read_body_validation(error) from None
    except (ValueError, RecursionError):
        raise SemcacheError(Code.MALFORMED_BODY, UNREADABLE) from None


def _says_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind.startswith("application/") and kind.endswith(("/json", "+json"))


def documents(body: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI shows of a hot route, which reads its body itself."""
    return {
        "requestBody": {"content": {"application/json": {"schema": body.model_json_schema()}}, "required": True},
        "security": [{"HTTPBearer": []}],
    }


def respond(body: BaseModel, status: int = 200) -> Response:
    """A body as JSON that can hold any text."""
    return Response(dump(body.model_dump(mode="json", by_alias=True)), status, media_type="application/json")


__all__ = ["CacheOf", "RuntimeOf", "TenantOf", "documents", "read_body", "respond", "runtime_of", "visited_cache"]
