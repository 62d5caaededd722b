"""The workers' periodic tasks: rows of `task`, each leased to the worker that does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast
from uuid import UUID

from psycopg.types.json import Jsonb

from service.store.database import Database
from service.store.queries import query

Outcome = Literal["done", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class TaskRow:
    """How a task stands. detail: what its last run did; ended: Unix time of its end; seconds: how long it took."""

    name: str
    outcome: str | None
    failures: int
    detail: dict[str, Any]
    ended: float | None
    seconds: float | None


async def claim(db: Database, name: str, holder: UUID, seconds: float) -> float | None:
    """Take a due task for `seconds`. None: it is ours; else in how many seconds it is worth asking again."""
    async with db.connection() as connection:
        row = await connection.one("select semcache.claim_task(%s, %s, %s) as wait", (name, holder, seconds))
    return cast("float | None", row["wait"])


async def renew(db: Database, name: str, holder: UUID, seconds: float) -> bool:
    """Keep the lease while the task runs; False where another worker has taken it."""
    async with db.connection() as connection:
        cursor = await connection.execute(
            query("renew_task"), {"name": name, "holder": holder, "seconds": seconds}, prepare=True
        )
        return await cursor.fetchone() is not None


async def end(
    db: Database, name: str, holder: UUID, *, outcome: Outcome, detail: dict[str, Any], interval: float
) -> float:
    """Note how a run ended; returns in how many seconds the next is due. interval: seconds between runs."""
    values = {"name": name, "holder": holder, "outcome": outcome, "detail": Jsonb(detail), "interval": interval}
    async with db.connection() as connection:
        row = await (await connection.execute(query("end_task"), values, prepare=True)).fetchone()
    return float(row["seconds"]) if row else interval


async def states(db: Database) -> list[TaskRow]:
    async with db.connection() as connection:
        rows = await (await connection.execute(query("list_tasks"), prepare=True)).fetchall()
    return [TaskRow(**row) for row in rows]


__all__ = ["Outcome", "TaskRow", "claim", "end", "renew", "states"]
