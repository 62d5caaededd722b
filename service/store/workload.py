"""What the workload report reads: the log, the stored prompts, and how often each system prompt came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from service.errors import Code, SemcacheError
from service.store.database import Database
from service.store.queries import query

MOST = {"requests": 1_000_000, "prompts": 50_000, "systems": 20}


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One request: fields as in request_log, and the bytes that limits count of its entry where that still stands."""

    request_key: bytes | None
    entry_id: UUID | None
    outcome: str
    similarity: float | None
    tokens_saved: int
    tokens_spent: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class PromptRow:
    prompt: str
    prompt_tokens: int | None


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system prompt by its digest; prompt_tokens: of all its requests whose answers still stand."""

    system: str
    requests: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Workload:
    requests: list[RequestRow]
    prompts: list[PromptRow]
    systems: list[SystemRow]


async def read(db: Database, *, since: datetime, cache: str | None, tenant: str | None) -> Workload:
    """The workload of all caches, or of those of a name, a tenant. `db` acts as the worker.

    Raises: SemcacheError(CACHE_NOT_FOUND) where there are none.
    """
    values = {"since": since, "cache": cache, "tenant": tenant} | MOST
    async with db.connection(bulk=True) as connection:
        if await (await connection.execute(query("report_caches"), values)).fetchone() is None:
            rule = "no cache has this name and tenant; `table semcache.overview` in psql shows those that there are"
            raise SemcacheError(Code.CACHE_NOT_FOUND, rule)
        requests = await (await connection.execute(query("report_requests"), values)).fetchall()
        prompts = await (await connection.execute(query("report_prompts"), values)).fetchall()
        systems = await (await connection.execute(query("report_systems"), values)).fetchall()
    return Workload(
        [RequestRow(**row) for row in requests],
        [PromptRow(**row) for row in prompts],
        [SystemRow(**row) for row in systems],
    )


__all__ = ["PromptRow", "RequestRow", "SystemRow", "Workload", "read"]
