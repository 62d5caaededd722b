"""`pgsemcache import` and `pgsemcache export`: entries as lines of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Annotated
from uuid import UUID, uuid4

import typer

from service.api.transfer import checked_line
from service.cache import jobs
from service.cache.directory import OpenCache, reopen_cache
from service.cache.lines import to_line
from service.cache.runtime import Runtime, build_runtime
from service.commands.target import DatabaseUrl, DataDir, open_target, read_settings
from service.errors import Code, SemcacheError
from service.settings import DEFAULT_CACHE, DEFAULT_TENANT, Settings
from service.store import jobs as store
from service.store import migrate, tenants
from service.store.database import Database, Limits
from service.store.rows import JobRow

LINES = 10_000  # of one job
LOOK = 0.2  # seconds between looks at a job that a worker has taken over

CacheName = Annotated[str, typer.Option("--cache", help="The cache.")]
TenantName = Annotated[str, typer.Option("--tenant", help="Whose cache.")]
Work = Callable[[Runtime, OpenCache], Awaitable[None]]


def import_lines(
    file: Annotated[
        typer.FileText, typer.Argument(help="Lines of JSON, as bodies of POST entries or as exported; - is stdin.")
    ],
    cache: CacheName = DEFAULT_CACHE,
    tenant: TenantName = DEFAULT_TENANT,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Store the entries of a file, in jobs of 10,000 lines; one that is broken off is finished by a worker."""
    settings = read_settings(data_dir=data_dir, database_url=database_url)

    async def work(runtime: Runtime, opened: OpenCache) -> None:
        lines = (_checked(settings, line, number) for number, line in enumerate(file, 1))
        before = 0
        while part := list(islice(lines, LINES)):
            job = await _finish(runtime, opened, await store.create(runtime.db, opened.row, "import", part))
            _tell(job, before)
            before += len(part)

    _run(settings, tenant, cache, work)


def export_lines(
    file: Annotated[typer.FileTextWrite, typer.Argument(help="Where to write; - is stdout.")],
    cache: CacheName = DEFAULT_CACHE,
    tenant: TenantName = DEFAULT_TENANT,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Write the entries of a cache that may be served, a line of JSON each, as `import` reads them."""

    async def work(runtime: Runtime, opened: OpenCache) -> None:
        count, position = 0, None
        while rows := await store.to_export(runtime.db, opened.row, position, jobs.PAGE):
            file.writelines(f"{to_line(row)}\n" for row in rows)
            count, position = count + len(rows), jobs.after(rows, position)
        typer.echo(f"{count} entries exported", err=True)

    _run(read_settings(data_dir=data_dir, database_url=database_url), tenant, cache, work)


def _checked(settings: Settings, line: str, number: int) -> str:
    try:
        return checked_line(settings, json.loads(line), f"line {number}")
    except (ValueError, RecursionError):
        rule = f"line {number}: must be JSON; all lines before the last full {LINES} were imported"
        raise SemcacheError(Code.INVALID_DATA, rule) from None


async def _finish(runtime: Runtime, opened: OpenCache, job_id: UUID) -> JobRow:
    """Do the job, or watch the worker that has taken it over."""
    holder, tenant_id, watched = uuid4(), opened.row.tenant_id, sys.stderr.isatty()
    while (job := await store.get(runtime.db, opened.row, job_id)).ended_at is None:
        if watched:
            typer.echo(f"\r{job.done + job.failed} of {job.total}", err=True, nl=False)
        claimed = await store.claim(runtime.db, holder, jobs.LEASE_SECONDS, (tenant_id, job_id))
        if claimed is None:
            await asyncio.sleep(LOOK)
        else:
            await jobs.work(runtime, claimed, holder)
    if watched:
        typer.echo("\r", err=True, nl=False)
    return job


def _tell(job: JobRow, before: int) -> None:
    typer.echo(f"{job.done} entries imported, {job.failed} not", err=True)
    for error in job.errors:
        place = f"line {before + error['line']}: " if "line" in error else ""
        typer.echo(f"{place}{error['rule']}", err=True)
    if job.state != "done":
        raise SemcacheError(Code.INVALID_DATA, f"the import ended as {job.state}")


def _run(settings: Settings, tenant: str, cache: str, work: Work) -> None:
    async def job(url: str) -> None:
        db = Database(url, Limits(pool_min=1, pool_max=4, bulk_timeout=settings.bulk_timeout))
        await db.verify()
        runtime = build_runtime(settings, db)
        await runtime.start()
        try:
            whose = tenants.ensure if tenant == DEFAULT_TENANT else tenants.find
            owner = await whose(db, tenant)
            await work(runtime, await reopen_cache(runtime, owner, cache))
        finally:
            await runtime.stop()

    with open_target(settings) as target:
        if target.embedded:
            migrate.upgrade(target.url)
        migrate.require_current(target.url)
        asyncio.run(job(target.url))


__all__ = ["export_lines", "import_lines"]
