"""Reading what a service found out about its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import dict_row
from running import Service

_OF_CACHE = """
select o.* from semcache.observation o join semcache.cache c using (cache_id)
where c.name = %s order by o.observation_id
"""


async def observed(service: Service, cache: str, rows: int) -> list[dict[str, Any]]:
    """The observations of a cache, in the order of their making, once there are so many."""
    url = service.runtime.settings.database_url
    assert url is not None
    connect = psycopg.AsyncConnection.connect(url.get_secret_value(), autocommit=True, row_factory=dict_row)
    async with await connect as connection:
        for _ in range(1000):
            found = await (await connection.execute(_OF_CACHE, (cache,))).fetchall()
            if len(found) >= rows:
                assert len(found) == rows, found
                return found
            await asyncio.sleep(0.005)
    raise AssertionError(f"{len(found)} observations: {found}")


def counted(service: Service, name: str, **labels: str) -> float:
    """A counter of the service's metrics."""
    return service.runtime.metrics.registry.get_sample_value(name, labels) or 0.0


async def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Return once it holds."""
    for _ in range(int(seconds * 200)):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never held")


async def settled(service: Service) -> None:
    """Return once the service compares nothing any more."""
    await until(lambda: not service.runtime.observer.chores._tasks)
