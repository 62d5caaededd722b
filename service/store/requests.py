"""The request log, written in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from service.store.database import Database
from service.store.rows import TenantId


async def record(db: Database, tenant_id: TenantId, requests: Sequence[dict[str, Any]]) -> None:
    """Write lookups of one tenant and count their hits. Fields as the columns of request_log, and `served`."""
    async with db.tenant(tenant_id) as connection:
        await connection.execute("select semcache.record_requests(%s, %s)", (tenant_id, Jsonb(list(requests))))


__all__ = ["record"]
