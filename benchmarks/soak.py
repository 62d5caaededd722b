"""A full cache under steady stores: does it keep its budget of bytes, and do tables and indexes stop growing?

A cache is filled to its `maxBytes`; then answers of 200 to 1,400 bytes with 384-dimensional vectors are stored through
the service's own door at a steady pace, each under a new request, beside a worker as users start it. Each second all
that the cache holds is added up, with the rows of each table, dead ones included, and each table's size with its
indexes. `bounds` says how many rows each may have, whatever the time. A store's time counts from when it was due.

    python benchmarks/soak.py [--minutes 24] [--rate 200] [--megabytes 40] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
from psycopg.rows import dict_row
from setting import Times, chat_body, own_database, table, write_json

from service.store import caches, embedders, entries, tenants
from service.store.database import Database, Limits
from service.store.rows import CacheRow, EmbedderId, NewEntry, ScopeId

DIMENSIONS = 384
KEY = bytes(32)
BETWEEN_VACUUMS = 90  # seconds at most: a minute after the one before, and the worker looks each half minute
REMEMBERED = 4  # evicted requests, for each entry that fits: sql/functions/evict_entries.sql
KEPT = 660  # seconds for which replicas are told what to forget, until the purge of the minute: purge_entries.sql
HELD = "select sum(u.bytes)::float8 as bytes, count(*) as entries from semcache.entry_usage u where u.cache_id = %s"
SIZES = """
select
    c.relname as name,
    sum(pg_table_size(t.relid))::bigint as table_bytes,
    sum(pg_indexes_size(t.relid))::bigint as index_bytes,
    sum(t.n_live_tup + t.n_dead_tup)::bigint as rows
from pg_catalog.pg_stat_user_tables t
join pg_catalog.pg_class c on c.oid = coalesce(pg_partition_root(t.relid), t.relid)
where t.schemaname = 'semcache'
group by c.relname
"""


@dataclass
class Writer:
    """Stores answers that nobody asked for before."""

    db: Database
    cache: CacheRow
    scope_id: ScopeId
    embedder_id: EmbedderId
    draw: random.Random = field(default_factory=lambda: random.Random(0))
    vectors: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    async def store(self) -> None:
        vector = self.vectors.normal(size=DIMENSIONS).astype(np.float32)
        body = chat_body("x" * self.draw.randrange(200, 1_400))
        entry = NewEntry(
            scope_id=self.scope_id,
            exact_key=self.draw.randbytes(32),
            attributes_key=KEY,
            prompt=f"Where is bollard {uuid4()}?",
            payload=json.dumps({"version": 1, "endpoint": "chat", "body": body}),
            provenance="upstream",
            attributes={},
            tags=[],
            ttl_ms=None,
            cost_ms=self.draw.uniform(100, 5_000),
        )
        vector /= np.linalg.norm(vector)
        await entries.store(self.db, self.cache, entry, embedder_id=self.embedder_id, vector=vector)

    async def fill(self, max_bytes: int) -> None:
        """To the brim, taking an entry for 2,700 bytes."""
        for _ in range(max_bytes // 2_700 // 10):
            await asyncio.gather(*(self.store() for _ in range(10)))

    async def keep_storing(self, rate: float, seconds: float) -> Times:
        """At this pace, whether or not the ones before are done."""
        times = Times()
        begun = time.perf_counter()

        async def store(due: float) -> None:
            await self.store()
            times.seconds.append(time.perf_counter() - due)

        async with asyncio.TaskGroup() as stores:
            for number in range(int(rate * seconds)):
                due = begun + number / rate
                await asyncio.sleep(due - time.perf_counter())
                stores.create_task(store(due))
        times.wall = time.perf_counter() - begun
        return times


@asynccontextmanager
async def writer(url: str, max_bytes: int) -> AsyncIterator[Writer]:
    db = Database(url, Limits(timeout=60.0))
    await db.open()
    tenant = await tenants.ensure(db, "bench")
    cache = await caches.create(db, tenant.tenant_id, "full", {"maxBytes": max_bytes})
    embedder_id = await embedders.register(
        db,
        kind="local",
        name="bench",
        revision="r1",
        dimensions=DIMENSIONS,
        max_tokens=16,
        probe=None,
        same=lambda *_: False,
    )
    scope_id = await entries.ensure_scope(
        db,
        cache,
        scope_key=KEY,
        canonical_version=1,
        parts={},
        model_key=KEY,
        model={"name": "m"},
        config_key=KEY,
        config="{}",
    )
    yield Writer(db, cache, scope_id, embedder_id)
    await db.close()


async def watch(url: str, cache_id: int, seconds: float) -> list[dict[str, Any]]:
    """What the cache holds, and what each table takes, each second."""
    samples = []
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, row_factory=dict_row) as connection:
        begun = time.monotonic()
        for second in range(int(seconds) + 1):
            await asyncio.sleep(begun + second - time.monotonic())
            held = await (await connection.execute(HELD, (cache_id,))).fetchone()
            assert held is not None
            tables = await (await connection.execute(SIZES)).fetchall()
            samples.append({"second": second, **held, "tables": {row.pop("name"): row for row in tables}})
    return samples


async def soak(url: str, options: argparse.Namespace) -> tuple[Times, list[dict[str, Any]]]:
    seconds, max_bytes = options.minutes * 60, options.megabytes * 1_000_000
    async with writer(url, max_bytes) as full:
        await full.fill(max_bytes)
        worker = await asyncio.create_subprocess_exec(sys.executable, "-m", "workers", "--database-url", url)
        await asyncio.sleep(30)  # the worker has begun, and evicted what the filling brought too much
        assert worker.returncode is None
        times, samples = await asyncio.gather(
            full.keep_storing(options.rate, seconds), watch(url, full.cache.cache_id, seconds)
        )
        worker.terminate()
        await worker.wait()
    return times, samples


def summary(times: Times, samples: list[dict[str, Any]], max_bytes: int) -> dict[str, Any]:
    """Percent of the budget; milliseconds."""
    shares = [100 * sample["bytes"] / max_bytes for sample in samples]
    return {
        "stores a second": times.rate,
        "p50 ms": times.p50,
        "p99 ms": times.percentile(0.99),
        "least %": min(shares),
        "most %": max(shares),
        "seconds over 102 %": sum(share > 102 for share in shares),
    }


def bounds(entries: int, rate: float) -> dict[str, float]:
    """How many rows, dead ones included, each table may come to that grows by stores: what is kept, and what dies
    between two vacuums."""
    dead = rate * BETWEEN_VACUUMS
    return {
        **dict.fromkeys(("entry", "output", "embedding"), entries + dead),
        "entry_usage": entries + 2 * dead,  # each is ranked once before it goes
        "evicted": REMEMBERED * entries + dead,
        "invalidation": rate * KEPT + dead,
        "cache_change": dead,
    }


def sizes(samples: list[dict[str, Any]], rate: float) -> str:
    """Megabytes of each table with its indexes at each tenth of the run, and its rows beside their bound."""
    marks = [samples[(len(samples) - 1) * tenth // 10] for tenth in range(11)]
    most = {name: max(s["tables"][name]["rows"] for s in samples) for name in marks[-1]["tables"]}
    bound = bounds(max(sample["entries"] for sample in samples), rate)

    def megabytes(name: str, *kinds: str) -> list[float]:
        return [sum(mark["tables"][name][kind] for kind in kinds) / 1e6 for mark in marks]

    both = {name: megabytes(name, "table_bytes", "index_bytes") for name in most}
    lines = [
        [name, *both[name], most[name], int(bound[name]) if name in bound else ""]
        for name in sorted(both, key=lambda name: -both[name][-1])
        if name in bound or both[name][-1] > 1
    ]
    for kind in ("table", "index"):
        every = (megabytes(name, f"{kind}_bytes") for name in most)
        lines.append([f"all, {kind}", *map(sum, zip(*every, strict=True)), "", ""])
    minutes = [f"{mark['second'] / 60:.1f} min" for mark in marks]
    return table(["MB", *minutes, "most rows", "bound of rows"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=24)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--json")
    options = parser.parse_args()
    with own_database() as url:
        times, samples = asyncio.run(soak(url, options))
    figures = summary(times, samples, options.megabytes * 1_000_000)
    print(table(["", ""], list(figures.items())))
    print(sizes(samples, options.rate))
    write_json(options.json, {"summary": figures, "samples": samples})


if __name__ == "__main__":
    main()
