"""The request log: written in batches, and read for figures."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from service.policy.sweep import Nearest, Seen, Verdicts
from service.store.database import Connection, Database, Row
from service.store.queries import query
from service.store.rows import CacheRow, TenantId
from service.store.text import to_columns


async def record(db: Database, tenant_id: TenantId, requests: Sequence[dict[str, Any]]) -> None:
    """Write lookups of one tenant and count their hits. Fields as the columns of request_log, and `served`."""
    async with db.tenant(tenant_id) as connection:
        await connection.execute("select semcache.record_requests(%s, %s)", (tenant_id, Jsonb(list(requests))))


async def logged(db: Database, cache: CacheRow, request_id: str) -> list[Row]:
    """Rows of the log with this id, the newest first, as `logged_requests` gives them."""
    values = {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "request_id": to_columns(request_id)[0]}
    async with db.tenant(cache.tenant_id) as connection:
        return await (await connection.execute(query("logged_requests"), values)).fetchall()


async def traffic(db: Database, cache: CacheRow, *, since: datetime, step: timedelta) -> tuple[list[Row], list[Row]]:
    """How requests were served, by tier and step, and why they were not: rows of `request_traffic`, `miss_reasons`."""
    values = _window(cache, since) | {"step": step}
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        return await _rows(connection, "request_traffic", values), await _rows(connection, "miss_reasons", values)


async def nearest(db: Database, cache: CacheRow, *, since: datetime, judged_since: datetime) -> Nearest:
    """How near neighbours were to requests since a time, and what verdicts said of them since another."""
    async with db.tenant(cache.tenant_id, bulk=True) as connection:
        seen = await _rows(connection, "nearest_similarities", _window(cache, since))
        judged = await _rows(connection, "verdicts_by_similarity", _window(cache, judged_since))
    return Nearest(
        requests=sum(row["requests"] for row in seen),
        exact_hits=sum(row.pop("exact_hits") for row in seen),
        seen=[Seen(**row) for row in seen if row["step"] is not None],
        verdicts=[Verdicts(**row) for row in judged],
    )


def _window(cache: CacheRow, since: datetime) -> dict[str, Any]:
    return {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "since": since}


async def _rows(connection: Connection, name: str, values: dict[str, Any]) -> list[Row]:
    """Planned for these values each time: a plan for any window would read the whole log for a short one."""
    return await (await connection.execute(query(name), values, prepare=False)).fetchall()


__all__ = ["logged", "nearest", "record", "traffic"]
