"""Routes of jobs: long work on a cache, asked for, seen, cancelled, and what an export has written."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from service.api.context import CacheOf, RuntimeOf, respond
from service.api.limits import page_size
from service.api.problems import RESPONSES
from service.api.schemas import JobPage, JobView, NewJob
from service.api.transfer import checked_line
from service.cache import jobs
from service.cache.runtime import Runtime
from service.errors import Code, SemcacheError
from service.store.rows import JobRow

router = APIRouter(prefix="/v1/caches/{cache_id}/jobs", tags=["jobs"], responses=RESPONSES)


@router.post("", status_code=202, response_model=JobView, summary="Ask for long work on a cache")
async def create(body: NewJob, runtime: RuntimeOf, cache: CacheOf) -> Response:
    lines = _lines(runtime, body)
    return respond(_view(await jobs.create(runtime, cache, body.kind, lines)), 202)


@router.get("", response_model=JobPage, summary="Jobs of a cache, the newest first")
async def index(runtime: RuntimeOf, cache: CacheOf, limit: Annotated[int | None, Query(ge=1)] = None) -> Response:
    found = await jobs.index(runtime, cache, page_size(runtime.settings, limit))
    return respond(JobPage(data=[_view(job) for job in found]))


@router.get("/{job_id}", response_model=JobView, summary="How far a job is")
async def read(job_id: str, runtime: RuntimeOf, cache: CacheOf) -> Response:
    return respond(_view(await jobs.read(runtime, cache, _job_id(job_id))))


@router.get(
    "/{job_id}/lines",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/x-ndjson": {}}, "description": "an entry a line"}},
    summary="What an export has written, an entry a line",
)
async def lines(job_id: str, runtime: RuntimeOf, cache: CacheOf) -> Response:
    job = await jobs.read(runtime, cache, _job_id(job_id))
    return StreamingResponse(jobs.written(runtime, cache, job.job_id), media_type="application/x-ndjson")


@router.delete("/{job_id}", status_code=204, summary="Cancel a job; what it did stays")
async def cancel(job_id: str, runtime: RuntimeOf, cache: CacheOf) -> Response:
    await jobs.cancel(runtime, cache, _job_id(job_id))
    return Response(status_code=204)


def _lines(runtime: Runtime, body: NewJob) -> list[str]:
    if (body.kind == "import") != (body.entries is not None):
        raise SemcacheError(Code.INVALID_DATA, "entries: must be given for an import, and for nothing else")
    return [checked_line(runtime.settings, item, f"entries.{n}") for n, item in enumerate(body.entries or ())]


def _view(job: JobRow) -> JobView:
    return JobView(
        id=job.job_id.hex,
        kind=job.kind,
        state=job.state,
        done=job.done,
        failed=job.failed,
        total=job.total,
        changed=job.changed,
        errors=job.errors,
        created_at=job.created_at,
        ended_at=job.ended_at,
    )


def _job_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise SemcacheError(Code.JOB_NOT_FOUND, "a job's id is 32 hexadecimal digits; this is none") from None


__all__ = ["router"]
