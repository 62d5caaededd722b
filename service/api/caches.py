"""Routes of caches: made, seen, changed, flushed, deleted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from service.api.context import CacheOf, RuntimeOf, TenantOf, respond
from service.api.limits import page_size
from service.api.problems import RESPONSES
from service.api.schemas import CacheChange, CachePage, CacheView, NewCache
from service.cache import manage
from service.cache.directory import OpenCache, list_caches

router = APIRouter(prefix="/v1/caches", tags=["caches"], responses=RESPONSES)


def _view(cache: OpenCache) -> CacheView:
    row = cache.row
    return CacheView(
        cache_id=row.name, name=row.name, policy=cache.policy, created_at=row.created_at, updated_at=row.updated_at
    )


@router.post("", status_code=201, response_model=CacheView, summary="Make a cache")
async def create(body: NewCache, runtime: RuntimeOf, tenant: TenantOf) -> Response:
    return respond(_view(await manage.create_cache(runtime, tenant, body.name, body.policy)), 201)


@router.get("", response_model=CachePage, summary="List caches by name")
async def index(
    runtime: RuntimeOf,
    tenant: TenantOf,
    cursor: str | None = None,
    limit: Annotated[int | None, Query(ge=1)] = None,
) -> Response:
    size = page_size(runtime.settings, limit)
    found = await list_caches(runtime, tenant, after=cursor, limit=size + 1)
    following = found[size - 1].row.name if len(found) > size else None
    return respond(CachePage(data=[_view(cache) for cache in found[:size]], next_cursor=following))


@router.get("/{cache_id}", response_model=CacheView, summary="A cache with its policy, whole")
async def read(cache: CacheOf) -> Response:
    return respond(_view(cache))


@router.patch("/{cache_id}", response_model=CacheView, summary="Change keys of a cache's policy")
async def change(body: CacheChange, runtime: RuntimeOf, cache: CacheOf) -> Response:
    return respond(_view(await manage.change_policy(runtime, cache, body.policy)))


@router.delete("/{cache_id}", status_code=204, summary="Delete a cache with all its entries")
async def delete(runtime: RuntimeOf, cache: CacheOf) -> Response:
    await manage.delete_cache(runtime, cache)
    return Response(status_code=204)


@router.post("/{cache_id}/flush", status_code=204, summary="Stop serving every entry, on every replica")
async def flush(runtime: RuntimeOf, cache: CacheOf) -> Response:
    await manage.flush(runtime, cache)
    return Response(status_code=204)


__all__ = ["router"]
