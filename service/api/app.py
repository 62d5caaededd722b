"""The HTTP service: its routes, its errors, and the parts of the process, opened and closed by its lifespan."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api import caches, console, entries, explanations, jobs, operations, problems, statistics
from service.api.limits import BodyLimit
from service.api.origins import LocalOrigins
from service.api.proxy import Proxy
from service.api.request_id import RequestId
from service.api.traces import Traced
from service.cache.runtime import build_runtime
from service.resources import version
from service.settings import Settings
from service.store.database import Database, Limits

DESCRIPTION = """
A semantic cache for model answers, kept in Postgres. Similarities are cosine, 0 to 1, higher is closer. Errors are
problem+json (RFC 9457) with a stable `code`. A miss is 200 with an empty `data`.
"""


class App(FastAPI):
    """With a front of ASGI middleware before all of FastAPI's, of which the proxy needs nothing."""

    front: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.front(scope, receive, send)


def create_app(settings: Settings, database_url: str, *, on_down: Callable[[], None] | None = None) -> App:
    """The service over one database, whose schema must be current.

    `on_down` may start a database of ours again; it is called in a thread while the database does not answer.
    """
    db = Database(database_url, _limits(settings), on_down=on_down)
    runtime = build_runtime(settings, db)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await runtime.start()
        try:
            yield
        finally:
            await runtime.stop()

    app = App(title="pgsemcache", version=version(), description=DESCRIPTION, lifespan=lifespan)
    app.state.runtime = runtime
    problems.install(app)
    app.include_router(entries.router)  # first, since routes are tried in order and these are the hot ones
    app.include_router(explanations.router)
    app.include_router(caches.router)
    app.include_router(statistics.router)
    app.include_router(jobs.router)
    app.include_router(operations.router)
    console.install(app)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    front: ASGIApp = LocalOrigins(Proxy(partial(FastAPI.__call__, app), runtime), runtime)
    app.front = RequestId(Traced(front) if settings.traces else front)
    return app


def _limits(settings: Settings) -> Limits:
    return Limits(
        pool_min=settings.pool_min,
        pool_max=settings.pool_max,
        timeout=settings.database_timeout,
        bulk_timeout=settings.bulk_timeout,
        breaker_failures=settings.breaker_failures,
        breaker_retry=settings.breaker_retry,
        probes=settings.ivfflat_probes,
        ef_search=settings.hnsw_ef_search,
    )


__all__ = ["create_app"]
