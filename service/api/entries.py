"""Routes of entries: searched, stored, read, listed, changed, deleted, judged."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from service.api.context import CacheOf, RuntimeOf, documents, read_body, respond, runtime_of, visited_cache
from service.api.controls import session_name
from service.api.explanations import explanation_view
from service.api.limits import check_count, check_prompt, check_prompted, check_response, page_size
from service.api.problems import RESPONSES, Problem, as_problem, read_body_validation
from service.api.schemas import (
    BatchItem,
    BatchResult,
    DeletedCount,
    EntryBatch,
    EntryChange,
    EntryDetail,
    EntryFilter,
    EntryPage,
    EntryStored,
    EntryView,
    Feedback,
    NewEntry,
    ScopeView,
    Search,
    SearchBatch,
    SearchHit,
    SearchResult,
)
from service.cache import data, manage
from service.cache.directory import OpenCache
from service.cache.feedback import give_feedback
from service.cache.lookup import Looked
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.settings import Settings
from service.store.rows import EntryRow
from service.upstream.answer import Answer

BATCH_AT_ONCE = 16
SESSION: dict[str, Any] = {
    "parameters": [
        {
            "name": "x-session-id",
            "in": "header",
            "description": "the session that asks, for the request graph",
            "schema": {"type": "string"},
        }
    ]
}

router = APIRouter(prefix="/v1/caches/{cache_id}", tags=["entries"], responses=RESPONSES)


@router.post(
    "/entries/search",
    response_model=SearchResult,
    openapi_extra=documents(Search) | SESSION,
    summary="Find an answer that may be served",
)
async def search(request: Request, cache_id: str) -> Response:
    cache = await visited_cache(request, cache_id)
    return respond(await _search(await read_body(request, Search), runtime_of(request), cache, _session(request)))


@router.post(
    "/entries/batch-search",
    response_model=BatchResult,
    openapi_extra=SESSION,
    summary="Many searches, each with its own status",
)
async def batch_search(request: Request, body: SearchBatch, runtime: RuntimeOf, cache: CacheOf) -> Response:
    async def one(item: dict[str, Any]) -> SearchResult:
        return await _search(Search.model_validate(item), runtime, cache, _session(request))

    return respond(await _batch(body.searches, one, runtime.settings, 200))


@router.post("/entries", status_code=201, response_model=EntryStored, summary="Store an answer")
async def store(body: NewEntry, runtime: RuntimeOf, cache: CacheOf) -> Response:
    return respond(await _store(body, runtime, cache), 201)


@router.post("/entries/batch", response_model=BatchResult, summary="Store many answers, each with its own status")
async def batch_store(body: EntryBatch, runtime: RuntimeOf, cache: CacheOf) -> Response:
    turns: defaultdict[Any, asyncio.Lock] = defaultdict(asyncio.Lock)  # of equal prompts the last one counts

    async def one(item: dict[str, Any]) -> EntryStored:
        async with turns[str(item.get("prompt"))]:
            return await _store(NewEntry.model_validate(item), runtime, cache)

    return respond(await _batch(body.entries, one, runtime.settings, 201))


@router.get("/entries", response_model=EntryPage, summary="List living entries, page by page")
async def index(
    runtime: RuntimeOf,
    cache: CacheOf,
    *,
    cursor: str | None = None,
    limit: Annotated[int | None, Query(ge=1)] = None,
    order: Literal["oldest", "newest"] = "oldest",
    state: Annotated[
        Literal["pinned", "quarantined"] | None, Query(description="only these; they come newest first")
    ] = None,
) -> Response:
    size = page_size(runtime.settings, limit)
    after = _read_cursor(cursor)
    rows = await data.list_entries(runtime, cache, after=after, limit=size + 1, listing=state or order)
    following = _cursor(rows[size - 1]) if len(rows) > size else None
    return respond(EntryPage(data=[_view(row) for row in rows[:size]], next_cursor=following))


@router.get("/entries/{entry_id}", response_model=EntryDetail, summary="One entry with its scope")
async def read(entry_id: str, runtime: RuntimeOf, cache: CacheOf) -> Response:
    return respond(_detail(await data.read_entry(runtime, cache, _entry_id(entry_id))))


@router.patch("/entries/{entry_id}", response_model=EntryDetail, summary="Change lifetime, tags, pin or quarantine")
async def change(entry_id: str, body: EntryChange, runtime: RuntimeOf, cache: CacheOf) -> Response:
    asked = manage.Change(
        ttl_ms=body.ttl_millis,
        clear_ttl="ttl_millis" in body.model_fields_set and body.ttl_millis is None,
        tags=body.tags,
        pinned=body.pinned,
        quarantined=body.quarantined,
    )
    check_count(len(body.tags or []), runtime.settings.max_tags, "tags", "SEMCACHE_MAX_TAGS")
    await manage.change_entry(runtime, cache, _entry_id(entry_id), asked)
    return respond(_detail(await data.read_entry(runtime, cache, _entry_id(entry_id))))


@router.delete("/entries/{entry_id}", status_code=204, summary="Delete one entry")
async def delete(entry_id: str, runtime: RuntimeOf, cache: CacheOf) -> Response:
    await manage.delete_entry(runtime, cache, _entry_id(entry_id))
    return Response(status_code=204)


@router.delete("/entries", response_model=DeletedCount, summary="Delete entries by a filter, or count them")
async def delete_many(body: EntryFilter, runtime: RuntimeOf, cache: CacheOf) -> Response:
    check_count(len(body.attributes), runtime.settings.max_attributes, "attributes", "SEMCACHE_MAX_ATTRIBUTES")
    check_count(len(body.tags), runtime.settings.max_tags, "tags", "SEMCACHE_MAX_TAGS")
    which = manage.Filter(body.attributes, body.tags, body.model, body.older_than)
    deleted = await manage.delete_entries(runtime, cache, which, dry_run=body.dry_run)
    return respond(DeletedCount(deleted_entries_count=deleted))


@router.post(
    "/feedback",
    status_code=202,
    response_class=Response,
    summary="Say whether an answer was right; a wrong one is served no more",
)
async def feedback(body: Feedback, runtime: RuntimeOf, cache: CacheOf) -> Response:
    if body.prompt is not None:
        check_prompt(runtime.settings, body.prompt)
    await give_feedback(runtime, cache, _entry_id(body.entry_id), verdict=body.verdict, prompt=body.prompt)
    return Response(status_code=202)


def _session(request: Request) -> str | None:
    return session_name(request.headers.get("x-session-id"))


async def _search(body: Search, runtime: Runtime, cache: OpenCache, session: str | None) -> SearchResult:
    check_prompted(runtime.settings, body.prompt, body.attributes, body.scope)
    prompt = data.Prompt(
        body.prompt,
        body.scope,
        body.attributes,
        body.similarity_threshold,
        tuple(body.search_strategies),
        body.decision,
    )
    looked = await data.search(runtime, cache, prompt, session)
    explanation = explanation_view(await data.explain(runtime, cache, prompt, limit=8)) if body.explain else None
    return SearchResult(data=_hits(looked), reason=looked.reason, threshold=looked.threshold, explanation=explanation)


async def _store(body: NewEntry, runtime: Runtime, cache: OpenCache) -> EntryStored:
    settings = runtime.settings
    check_prompted(settings, body.prompt, body.attributes, body.scope)
    check_response(settings, body.response)
    check_count(len(body.tags), settings.max_tags, "tags", "SEMCACHE_MAX_TAGS")
    kept = await data.store(
        runtime,
        cache,
        data.Prompt(body.prompt, body.scope, body.attributes),
        body.response,
        tags=body.tags,
        ttl_ms=body.ttl_millis,
    )
    return EntryStored(entry_id=kept.stored.entry_id.hex, exact_only=kept.exact_only)


async def _batch(
    items: list[dict[str, Any]],
    one: Callable[[dict[str, Any]], Awaitable[SearchResult | EntryStored]],
    settings: Settings,
    status: int,
) -> BatchResult:
    """Every item for itself: one that fails says so in its place."""
    check_count(len(items), settings.max_batch, "items", "SEMCACHE_MAX_BATCH")
    places = asyncio.Semaphore(BATCH_AT_ONCE)

    async def outcome(item: dict[str, Any]) -> BatchItem:
        async with places:
            try:
                return BatchItem(status=status, result=await one(item))
            except ValidationError as error:
                failure = read_body_validation(error)
            except SemcacheError as error:
                failure = error
            return BatchItem(status=failure.code.value.status, error=Problem.model_validate(as_problem(failure)))

    return BatchResult(data=list(await asyncio.gather(*(outcome(item) for item in items))))


def _hits(looked: Looked) -> list[SearchHit]:
    found, answer = looked.found, looked.answer
    if found is None or answer is None:
        return []
    return [
        SearchHit(
            id=found.entry_id.hex,
            prompt=found.prompt,
            response=answer.text,
            attributes=found.attributes,
            similarity=found.similarity,
            search_strategy="exact" if looked.strategy == "exact" else "semantic",
            tags=found.tags,
            provenance=found.provenance,
            created_at=found.created_at,
            age_millis=int(looked.age * 1000),
            ttl_millis=None if looked.ttl is None else int(looked.ttl * 1000),
        )
    ]


def _view(row: EntryRow) -> EntryView:
    answer = Answer.from_payload(json.loads(row.payload))
    return EntryView(
        id=row.entry_id.hex,
        prompt=row.prompt,
        response=answer.text if answer else "",
        model=row.model,
        attributes=row.attributes,
        tags=row.tags,
        provenance=row.provenance,
        alias_of=row.alias_of.hex if row.alias_of else None,
        pinned=row.pinned,
        quarantined=row.quarantined_at is not None,
        created_at=row.created_at,
        expires_at=row.expires_at,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        hits=row.hits,
        last_hit_at=row.last_hit_at,
    )


def _detail(row: EntryRow) -> EntryDetail:
    return EntryDetail(**_view(row).model_dump(), scope=ScopeView.model_validate(row.scope))


def _entry_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise SemcacheError(Code.ENTRY_NOT_FOUND, "an entry's id is 32 hexadecimal digits; this is none") from None


def _cursor(row: EntryRow) -> str:
    return base64.urlsafe_b64encode(f"{row.created_at.isoformat()} {row.entry_id.hex}".encode()).decode()


def _read_cursor(cursor: str | None) -> tuple[datetime, UUID] | None:
    if cursor is None:
        return None
    try:
        at, entry_id = base64.urlsafe_b64decode(cursor).decode().split(" ")
        return datetime.fromisoformat(at), UUID(entry_id)
    except (ValueError, binascii.Error):
        raise SemcacheError(
            Code.INVALID_DATA, "cursor: is none of ours; pass nextCursor of the page before as it was"
        ) from None


__all__ = ["router"]
