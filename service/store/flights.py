"""Who of the replicas asks the model for an answer: rows of `lease`, held for as long as the call lasts.

What its stream brings meanwhile stands in `flight_chunk`, where others follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from service.store.database import Database
from service.store.queries import query
from service.store.rows import CacheRow, TenantId


@dataclass(frozen=True, slots=True)
class Place:
    """`landed`: another replica has stored the answer; `leads`: this one asks; else another asks, or nobody can say.

    seconds: how long its lease lasts, None where that is not to be seen. stream: the lead whose stream is shown.
    """

    landed: bool = False
    leads: bool = False
    seconds: float | None = None
    stream: UUID | None = None


@dataclass(frozen=True, slots=True)
class Lead:
    """A flight that a replica leads, by a holder of its own, so that a later lead of that name is another."""

    tenant_id: TenantId
    name: str
    holder: UUID

    @property
    def key(self) -> dict[str, Any]:
        return {"tenant_id": self.tenant_id, "name": self.name, "holder": self.holder}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a stream, `starts_at` bytes from its start. head: of the first one; ends: of the last one."""

    starts_at: int
    piece: bytes
    head: dict[str, Any] | None = None
    ends: Literal["whole", "broken"] | None = None


async def acquire(
    db: Database,
    cache: CacheRow,
    lead: Lead,
    *,
    seconds: float,
    exact_key: bytes,
    since: float,
    form: str | None = None,
) -> Place:
    """Try to take this lead for `seconds`. since: an entry of this request that is younger, in seconds, has landed.

    form: of the stream that is followed where another leads, or asked to be shown; None: none is.
    """
    values = {"cache_id": cache.cache_id, "exact_key": exact_key, "since": since, "seconds": seconds}
    async with db.tenant(lead.tenant_id) as connection:
        row = await connection.one(query("acquire_flight"), lead.key | values, prepare=True)
        if form is None or row["leads"] or row["landed"]:
            return Place(**row)
        shown = await connection.one(query("follow_flight"), lead.key | {"form": form}, prepare=True)
    return Place(**row, stream=shown["stream"])


async def renew(db: Database, leads: Sequence[Lead], seconds: float) -> None:
    values = {"names": [lead.name for lead in leads], "holders": [lead.holder for lead in leads], "seconds": seconds}
    async with db.connection() as connection:
        await connection.execute(query("renew_flights"), values, prepare=True)


async def end(db: Database, lead: Lead) -> None:
    async with db.connection() as connection:
        await connection.execute(query("end_flight"), lead.key, prepare=True)


async def show_chunk(db: Database, lead: Lead, chunk: Chunk, *, form: str, oldest: int) -> None:
    """Add a piece to what is shown of a stream, and forget pieces that start before `oldest`."""
    values = {
        "starts_at": chunk.starts_at,
        "form": form if chunk.head else None,
        "head": Jsonb(chunk.head) if chunk.head else None,
        "piece": chunk.piece,
        "ends": chunk.ends,
        "oldest": oldest,
    }
    async with db.tenant(lead.tenant_id) as connection:
        await connection.execute(query("show_flight_chunk"), lead.key | values, prepare=True)


async def read_chunks(db: Database, lead: Lead, place: int) -> tuple[bool, list[Chunk]]:
    """Whether the leader lives, and what it shows from so many bytes on."""
    async with db.tenant(lead.tenant_id) as connection:
        cursor = await connection.execute(query("read_flight_chunks"), lead.key | {"place": place}, prepare=True)
        rows = await cursor.fetchall()
    shown = [row for row in rows if row["starts_at"] is not None]
    return rows[0]["alive"], [Chunk(row["starts_at"], row["piece"], row["head"], row["ends"]) for row in shown]


async def forget_chunks(db: Database, lead: Lead) -> None:
    async with db.tenant(lead.tenant_id) as connection:
        await connection.execute(query("forget_flight_chunks"), lead.key, prepare=True)


__all__ = ["Chunk", "Lead", "Place", "acquire", "end", "forget_chunks", "read_chunks", "renew", "show_chunk"]
