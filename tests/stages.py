"""A user, a service, a model server and the worker's tasks, over real HTTP."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from asking import Asker, asked, chat
from processes import start
from running import Service, running_service

from service.settings import Settings
from service.store.database import Database
from tests.fakes.upstream import FakeUpstream
from workers import prefetch, request_graph
from workers.prefetch import Prefetched

QUESTIONS = ("How do I open an account?", "What does the card cost?", "Where is the nearest branch?")
TTL = 600


@dataclass
class Stage:
    """A model server, a service before it, a user of it, and the worker's tasks."""

    upstream: FakeUpstream
    settings: Settings
    asker: Asker
    worker: Database
    sql: psycopg.Connection[dict[str, Any]]

    async def visits(self, count: int = 4) -> None:
        """So many sessions ask all questions, and are in the graph at the end."""
        for number in range(count):
            for question in QUESTIONS:
                await self.asker.stored(chat(question), x_session_id=f"visit-{number}")
        await self.grow()

    async def grow(self) -> None:
        await self.asker.http.get("/v1/caches/default/stats")  # which writes the log
        await request_graph.run_once(self.worker, nodes=100, edges=100)

    def start_worker(self, **environment: str) -> subprocess.Popen[str]:
        """A worker process of its own."""
        settings = self.settings
        assert settings.database_url is not None
        return start(
            "pgsemcache",
            "worker",
            SEMCACHE_DATABASE_URL=settings.database_url.get_secret_value(),
            SEMCACHE_UPSTREAM=self.upstream.url,
            SEMCACHE_EMBEDDER=settings.embedder,
            SEMCACHE_EMBEDDER_URL=settings.embedder_url or "",
            SEMCACHE_EMBEDDER_MODEL=settings.embedder_model or "",
            **environment,
        )

    async def run(self, **changes: Any) -> Prefetched:
        return await prefetch.run_once(self.worker, self.settings.model_copy(update=changes))

    def expire(self, *questions: str, seconds: int = -1) -> None:
        """Their answers are an hour old and end in so many seconds."""
        self.sql.execute(
            """
            update entry
            set created_at = created_at - interval '1 hour',
                expires_at = now() + %s * interval '1 second'
            where prompt = any (%s)
            """,
            (seconds, list(questions)),
        )

    def rows(self, statement: str) -> list[dict[str, Any]]:
        return self.sql.execute(statement).fetchall()  # type: ignore[call-overload,no-any-return]

    async def asked(self, question: str) -> None:
        """Return when the model server has this question."""
        while not asked(self.upstream, question):
            self.upstream.arrived.clear()
            await asyncio.wait_for(self.upstream.arrived.wait(), 60)


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Service]:
    context = running_service(settings)
    yield await asyncio.to_thread(context.__enter__)
    await asyncio.to_thread(context.__exit__, None, None, None)
