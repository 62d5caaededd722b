"""Recall@1 of a lookup's neighbours in a large scope, against the exact scan, and what either costs.

What counts for a cache is whether the true nearest entry is found where it is near enough to be served, so recall is
given for all queries and for those whose nearest is above the floor. Vectors: real texts of the data folder
(SEMCACHE_BENCH_DATA) where it is there, filled up with mixtures of them; else questions of our own and mixtures.
Queries: texts and vectors that are not stored.

    python benchmarks/recall.py [--rows 100000] [--queries 500] [--floor 0.9] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from lookup import timed
from setting import Vectors, fill, own_database, questions, spread, table, write_json

from service.cache.data import Prompt, store
from service.cache.directory import authenticate
from service.cache.manage import create_cache
from service.cache.runtime import Runtime, build_runtime
from service.settings import Settings
from service.store.database import Database, Limits
from service.store.entries import find_neighbours
from service.store.index_care import build, large_scopes
from service.store.rows import EmbedderId, Found, ScopeId, ScopeRow

HALF = 1e-3  # half precision moves a similarity by less than this
HEADERS = ("index", "probes / ef", "recall@1", "recall@1 above floor", "p50 ms", "p99 ms")
DATA = Path(os.environ.get("SEMCACHE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
FILES = (("intents_clinc150", "text"), ("intents_banking77", "text"), ("questions_nq_open", "text"))


def texts() -> list[str]:
    """Distinct texts, of the data folder if it is there."""
    found: dict[str, None] = {}
    for name, key in FILES:
        path = DATA / f"{name}.jsonl"
        if path.exists():
            found |= dict.fromkeys(json.loads(line)[key] for line in path.read_text().splitlines())
    mixed = list(found) or questions(3000)
    np.random.default_rng(0).shuffle(mixed)
    return mixed


async def embed_all(runtime: Runtime, wanted: list[str]) -> Vectors:
    vectors = []
    for start in range(0, len(wanted), 512):
        block = wanted[start : start + 512]
        vectors += [v for v, _ in await asyncio.gather(*(runtime.embedder.embed(text) for text in block))]
    return np.stack(vectors)


def unstored(vectors: Vectors, count: int) -> Vectors:
    """Vectors beside stored ones, at all distances that a paraphrase may have."""
    draw = np.random.default_rng(1)
    beside = vectors[draw.integers(0, len(vectors), count)]
    beside = beside + draw.normal(0, 1, beside.shape) * draw.uniform(0.003, 0.03, (count, 1))
    return np.asarray(beside / np.linalg.norm(beside, axis=1, keepdims=True), dtype=np.float32)


async def main(args: argparse.Namespace) -> None:
    rows: list[list[Any]] = []
    with own_database() as url:
        runtime = build_runtime(Settings(database_url=url), Database(url, Limits()))
        await runtime.start()
        while not runtime.embedder.tried:  # noqa: ASYNC110 - the slot tells of nothing else
            await asyncio.sleep(0.05)
        known = texts()
        asked = min(args.queries // 2, len(known) // 10)
        real = await embed_all(runtime, known[: args.texts + asked])
        stored = real[asked:]
        vectors = np.concatenate([stored, spread(stored, max(0, args.rows - len(stored)))])[: args.rows]
        queries = np.concatenate([real[:asked], unstored(stored, args.queries - asked)])
        cache = await create_cache(runtime, await authenticate(runtime, None), "recall", {})
        first = await store(runtime, cache, Prompt("the first", {}, {}), "one", tags=[], ttl_ms=None)
        fill(url, like=str(first.stored.entry_id), vectors=vectors)
        worker = Database(url, Limits(bulk_timeout=3600), role="semcache_worker")
        await worker.open()
        (large,) = await large_scopes(worker, runtime.settings.exact_scan_limit)
        best = np.max(np.asarray(vectors, dtype=np.float16).astype(np.float32) @ queries.T, axis=0)
        served = best >= args.floor
        print(
            f"{len(stored)} real vectors of {len(vectors)}; {served.sum()} of {len(queries)} queries have a neighbour "
            f"at {args.floor} or above"
        )

        def look(db: Database, kind: str | None) -> Callable[[int], Awaitable[list[Found]]]:
            scope = ScopeRow(ScopeId(large.scope_id), [EmbedderId(large.embedder_id)] if kind else [])
            return lambda n: find_neighbours(
                db,
                cache.row,
                scope,
                embedder_id=EmbedderId(large.embedder_id),
                vector=queries[n % len(queries)],
                attributes={},
                neighbours=4,
            )

        async def measure(label: str, width: int | str, db: Database, kind: str | None, calls: int) -> None:
            call = look(db, kind)
            nearest = np.array([(await call(n))[0].similarity for n in range(len(queries))]) if kind else best
            found = nearest >= best - HALF
            times = await timed(call, calls)
            rows.append([label, width, found.mean(), found[served].mean(), times.p50, times.percentile(0.99)])
            print(table(HEADERS, [rows[-1]]).splitlines()[-1], flush=True)

        await measure("exact scan", "", runtime.db, None, 30)
        for kind, widths in (("ivfflat", (1, 3, 10, 30)), ("hnsw", (20, 40, 100))):
            await build(worker, replace(large, kind=kind))
            for width in widths:
                db = Database(url, Limits(probes=width, ef_search=width))
                await db.open()
                await measure(kind, width, db, kind, len(queries))
                await db.close()
        await worker.close()
        await runtime.stop()
    print()
    print(table(HEADERS, rows))
    write_json(args.json, [dict(zip(HEADERS, row, strict=True)) for row in rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--texts", type=int, default=30_000, help="most texts that are embedded")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--floor", type=float, default=0.9)
    parser.add_argument("--json")
    asyncio.run(main(parser.parse_args()))
