"""Long work on a cache, a batch at a time: whoever claims one may die at any point of it, and another does it again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from service.cache.asking_jobs import lines_to_ask, revalidate, warm
from service.cache.directory import OpenCache, reopen_cache
from service.cache.embedding import UNREAD
from service.cache.lines import take_line, to_line
from service.cache.runtime import Runtime
from service.ending import end
from service.errors import Code, SemcacheError
from service.identity.conversation import semantic_text
from service.store import jobs
from service.store.database import Row
from service.store.jobs import Batch, Claimed, Position
from service.store.rows import JobKind, JobRow
from service.store.tenants import Tenant
from service.store.text import from_columns

LEASE_SECONDS = 60.0
RENEWALS = 3
BATCH = 100
BATCH_SECONDS = 5.0
PAGE = 500
# Failures that pass by themselves: the batch is done again, where its lease has run out.
PASSING = (Code.DATABASE_UNAVAILABLE, Code.EMBEDDER_UNAVAILABLE)

logger = logging.getLogger("semcache.jobs")


async def create(runtime: Runtime, cache: OpenCache, kind: JobKind, lines: Sequence[str] = ()) -> JobRow:
    """Ask for work. lines: JSON texts of an import, each found right.

    Raises: SemcacheError(INVALID_DATA) where the cache's policy does not allow it.
    """
    if kind in ("warm", "revalidate"):
        lines = await lines_to_ask(runtime, cache, answered=kind == "revalidate")
    job_id = await jobs.create(runtime.db, cache.row, kind, lines)
    return await jobs.get(runtime.db, cache.row, job_id)


async def index(runtime: Runtime, cache: OpenCache, limit: int) -> list[JobRow]:
    """The newest first."""
    return await jobs.page(runtime.db, cache.row, limit)


async def read(runtime: Runtime, cache: OpenCache, job_id: UUID) -> JobRow:
    """Raises: SemcacheError(JOB_NOT_FOUND)."""
    return await jobs.get(runtime.db, cache.row, job_id)


async def cancel(runtime: Runtime, cache: OpenCache, job_id: UUID) -> None:
    """From here on no batch of it counts. One that has ended stays. Raises: SemcacheError(JOB_NOT_FOUND)."""
    await read(runtime, cache, job_id)
    await jobs.end(runtime.db, cache.row.tenant_id, job_id, "cancelled")


async def written(runtime: Runtime, cache: OpenCache, job_id: UUID) -> AsyncGenerator[str, None]:
    """The lines that an export has written so far."""
    last = 0
    while page := await jobs.lines(runtime.db, cache.row.tenant_id, job_id, after=last, limit=PAGE):
        yield "".join(f"{line}\n" for _, line in page)
        last = page[-1][0]


async def work(runtime: Runtime, claimed: Claimed, holder: UUID) -> None:
    """Do the batch that was claimed and note it; it stays ours for as long as that takes.

    Raises: SemcacheError, one of PASSING; the batch is anybody's again when its lease has run out.
    """
    renewing = asyncio.create_task(_keep_renewing(runtime, claimed, holder))
    try:
        cache = await reopen_cache(runtime, Tenant(claimed.tenant_id, claimed.tenant), claimed.cache)
        if cache.row.cache_id != claimed.cache_id:
            raise SemcacheError(Code.CACHE_NOT_FOUND, "the cache was deleted, and another one has its name")
        batch = await _KINDS[claimed.kind](runtime, cache, claimed)
    except SemcacheError as error:
        if error.code in PASSING:
            raise
        await jobs.end(runtime.db, claimed.tenant_id, claimed.job_id, "failed", error.detail)
        return
    except Exception as error:  # else it would come up again and again, before what waits behind it
        logger.exception("job %s failed", claimed.job_id)
        rule = f"it met a fault of this release: {type(error).__name__}"
        await jobs.end(runtime.db, claimed.tenant_id, claimed.job_id, "failed", rule)
        return
    finally:
        await end([renewing])
    await jobs.advance(runtime.db, claimed, holder, batch)


async def _keep_renewing(runtime: Runtime, claimed: Claimed, holder: UUID) -> None:
    while True:
        await asyncio.sleep(LEASE_SECONDS / RENEWALS)
        with contextlib.suppress(SemcacheError):
            await jobs.renew(runtime.db, claimed, holder, LEASE_SECONDS)


async def _import(runtime: Runtime, cache: OpenCache, claimed: Claimed) -> Batch:
    position = claimed.position or {"number": 0}
    lines = await jobs.lines(runtime.db, claimed.tenant_id, claimed.job_id, after=position["number"], limit=BATCH)
    parsed = [(number, json.loads(line)) for number, line in lines]
    await _embed_together(runtime, [line["prompt"] for _, line in parsed])
    until, done, errors = time.monotonic() + BATCH_SECONDS, 0, []
    for number, line in parsed:
        try:
            await take_line(runtime, cache, line)
            done += 1
        except SemcacheError as error:
            if error.code in PASSING:
                raise
            errors.append({"line": number, "rule": error.detail})
        position = {"number": number}
        if time.monotonic() > until:
            break
    return Batch(position, done, errors, ended=len(lines) < BATCH and (not lines or position["number"] == lines[-1][0]))


async def _export(runtime: Runtime, cache: OpenCache, claimed: Claimed) -> Batch:
    rows = await jobs.to_export(runtime.db, cache.row, claimed.position, PAGE)
    lines = [to_line(row) for row in rows]
    return Batch(after(rows, claimed.position), len(rows), lines=lines, ended=len(rows) < PAGE)


async def _re_embed(runtime: Runtime, cache: OpenCache, claimed: Claimed) -> Batch:
    await runtime.embedder.first_try()
    _, embedder_id = await runtime.embedder.embed("which embedder is it")
    rows = await jobs.to_embed(runtime.db, cache.row, embedder_id, claimed.position, BATCH)
    errors = []
    texts = {row["entry_id"]: semantic_text(from_columns(row["prompt"], row["prompt_verbatim"])) for row in rows}
    await _embed_together(runtime, [text for row in rows if row["missing"] and (text := texts[row["entry_id"]])])
    for row in rows:
        text = texts[row["entry_id"]]
        if not row["missing"] or text is None:
            continue
        try:
            vector, embedder_id = await runtime.embedder.embed(text)
        except SemcacheError as error:
            if error.code not in UNREAD:
                raise
            errors.append({"entryId": row["entry_id"].hex, "rule": error.code.slug})
            continue
        await jobs.add_vector(runtime.db, cache.row, row["entry_id"], embedder_id, vector)
    return Batch(after(rows, claimed.position), len(rows) - len(errors), errors, ended=len(rows) < BATCH)


_KINDS: dict[JobKind, Callable[[Runtime, OpenCache, Claimed], Awaitable[Batch]]] = {
    "import": _import,
    "export": _export,
    "re-embed": _re_embed,
    "warm": warm,
    "revalidate": revalidate,
}


async def _embed_together(runtime: Runtime, prompts: Sequence[str]) -> None:
    """Let the embedder remember the vectors: together they are cheaper than one after the other."""
    await runtime.embedder.first_try()
    texts = {text for prompt in prompts if (text := semantic_text(prompt))}
    await asyncio.gather(*(runtime.embedder.embed(text) for text in texts), return_exceptions=True)


def after(rows: Sequence[Row], position: Position | None) -> Position | None:
    """Where the next page of entries begins."""
    if not rows:
        return position
    last: dict[str, Any] = rows[-1]
    return {"created_at": last["created_at"].isoformat(), "entry_id": str(last["entry_id"])}


__all__ = ["LEASE_SECONDS", "PAGE", "after", "cancel", "create", "index", "read", "work", "written"]
