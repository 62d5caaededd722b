"""Lookups without embedding, of the same vectors in one run: this cache beside RedisVL on redis-stack and GPTCache.

Ours is `find_neighbours` on the real schema, inside this process: the exact scan, and an IVFFlat and an HNSW index as
the worker builds them. Each peer runs in a process of its own (`peer_redisvl.py`, `peer_gptcache.py`) and is called as
its users do, at its own defaults, with the vector given; its server is on the same machine, behind a socket file.
Every one answers with a whole stored answer. They take turns, round by round, so that the ratios hold on a busy
machine; per second is the median of the rounds, and p10 is near what a lookup costs when nothing else runs. A hit is a
query whose true nearest entry is at the floor or above, and recall@1 the share of them that is answered with it. Four
clients are four tasks or threads of one process. Ours and GPTCache's inserts are on disk when acknowledged, RedisVL's
are not.

A peer that cannot start is left out, with the reason. To install them:

    python -m venv /tmp/peers && /tmp/peers/bin/pip install -r benchmarks/peers-requirements.txt
    python benchmarks/peers.py --peers-python /tmp/peers/bin/python [--sizes 1000,10000,100000] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import psycopg
from peer import Timed, answer
from recall import HALF, embed_all, texts, unstored
from setting import Times, Vectors, chat_body, fill, own_database, spread, table, write_json

from service.cache.data import Prompt, store
from service.cache.directory import authenticate
from service.cache.manage import create_cache
from service.cache.runtime import Runtime, build_runtime
from service.settings import Settings
from service.store import entries
from service.store.database import Database, Limits
from service.store.index_care import LargeScope, build
from service.store.rows import CacheRow, EmbedderId, NewEntry, ScopeId, ScopeRow

HERE = Path(__file__).parent
PEERS = {
    "RedisVL flat": ("peer_redisvl.py", "flat"),
    "RedisVL HNSW": ("peer_redisvl.py", "hnsw"),
    "GPTCache": ("peer_gptcache.py",),
}
OURS: dict[str, Literal["ivfflat", "hnsw"] | None] = {
    "ours, exact": None,
    "ours, IVFFlat": "ivfflat",
    "ours, HNSW": "hnsw",
}
WARM = 20
PATIENCE = 60.0  # seconds: an exact scan of a large scope on a busy machine is slow, not wrong
LINE = 1 << 24  # bytes, at most, that a peer says at once
CLIENTS = (1, 4)
HEADERS = (
    "what",
    "entries",
    "recall@1",
    "hit p10 ms",
    "hit p50 ms",
    "miss p50 ms",
    "per second",
    "per second, 4 clients",
    "insert p50 ms",
)

Run = tuple[list[Timed], float]


@dataclass(frozen=True)
class Stock:
    """vectors: the first `size` are stored, the others are there to be inserted."""

    size: int
    vectors: Vectors
    queries: Vectors

    @classmethod
    def of(cls, real: Vectors, size: int, count: int) -> Stock:
        """`count` queries, half of them of texts that are not stored, and as many vectors to insert."""
        asked, stored = real[: count // 2], real[count // 2 :]
        mixed = spread(stored, size + count)
        vectors = np.concatenate([np.concatenate([stored, mixed])[:size], mixed[-count:]])
        queries = np.concatenate([asked, unstored(stored[:size], count - len(asked))])
        return cls(size, vectors, queries[np.random.default_rng(2).permutation(count)])

    def hits(self, floor: float) -> dict[int, float]:
        """The queries whose nearest entry is at the floor or above, and its similarity."""
        best = np.max(self.vectors[: self.size] @ self.queries.T, axis=0)
        return {number: float(near) for number, near in enumerate(best) if near >= floor}

    def similarity(self, number: int, place: int | None) -> float:
        return -1.0 if place is None else float(self.vectors[place] @ self.queries[number])


class Way(Protocol):
    """One cache with its entries in it."""

    async def run(self, call: str, first: int, count: int, clients: int) -> Run:
        """Look queries up, or insert spare vectors, by number. Returns (number, answer, seconds) of each, and seconds
        of all."""

    async def close(self) -> None: ...


@dataclass
class Ours:
    """A scope of its own."""

    db: Database
    cache: CacheRow
    scope: ScopeRow
    embedder_id: EmbedderId
    stock: Stock

    async def run(self, call: str, first: int, count: int, clients: int) -> Run:
        numbers = iter(range(first, first + count))
        done: list[Timed] = []
        one = self._look if call == "look" else self._insert

        async def work(numbers: Iterator[int]) -> None:
            for number in numbers:
                start = time.perf_counter()
                found = await one(number)
                done.append((number, found, time.perf_counter() - start))

        begun = time.perf_counter()
        await asyncio.gather(*(work(numbers) for _ in range(clients)))
        return done, time.perf_counter() - begun

    async def _look(self, number: int) -> int | None:
        found = await entries.find_neighbours(
            self.db,
            self.cache,
            self.scope,
            embedder_id=self.embedder_id,
            vector=self.stock.queries[number],
            attributes={},
            neighbours=4,
        )
        _, _, place = found[0].prompt.partition("filler ")
        return int(place) if place else None

    async def _insert(self, number: int) -> None:
        prompt = f"filler {number}"
        key = hashlib.sha256(prompt.encode()).digest()
        payload = json.dumps({"version": 1, "endpoint": "chat", "body": chat_body(answer(number))})
        entry = NewEntry(self.scope.scope_id, key, key, prompt, payload, "client", {}, [], None)
        await entries.store(self.db, self.cache, entry, embedder_id=self.embedder_id, vector=self.stock.vectors[number])

    async def close(self) -> None:
        """The database goes with the run."""


@dataclass
class Peer:
    """A child process, spoken to line by line."""

    process: Process
    errors: Path

    async def read(self) -> Any:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            raise SystemExit((self.errors.read_text().splitlines() or ["it ended without a word"])[-1])
        return json.loads(line)

    async def run(self, call: str, first: int, count: int, clients: int) -> Run:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps((call, first, count, clients)).encode() + b"\n")
        done, wall = await self.read()
        return done, wall

    async def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self.process.wait()


@dataclass
class Figures:
    """What one way showed. lookups: by number of clients."""

    lookups: dict[int, list[Run]] = field(default_factory=lambda: {clients: [] for clients in CLIENTS})
    inserts: list[Run] = field(default_factory=list)

    def row(self, what: str, stock: Stock, hits: dict[int, float]) -> list[Any]:
        alone = [timed for done, _ in self.lookups[1] for timed in done]
        found = [stock.similarity(number, place) >= hits[number] - HALF for number, place, _ in alone if number in hits]
        hit = Times([seconds for number, _, seconds in alone if number in hits])
        miss = Times([seconds for number, _, seconds in alone if number not in hits])
        insert = Times([seconds for done, _ in self.inserts for _, _, seconds in done])
        rates = [statistics.median(len(done) / wall for done, wall in self.lookups[clients]) for clients in CLIENTS]
        return [what, stock.size, statistics.mean(found), hit.percentile(0.1), hit.p50, miss.p50, *rates, insert.p50]


async def start_ours(runtime: Runtime, worker: Database, name: str, stock: Stock) -> Ours:
    kind = OURS[name]
    cache = await create_cache(runtime, await authenticate(runtime, None), f"{kind or 'exact'}-{stock.size}", {})
    first = await store(runtime, cache, Prompt("the first", {}, {}), "one", tags=[], ttl_ms=None)
    fill(runtime.db.url, like=str(first.stored.entry_id), vectors=stock.vectors[: stock.size])
    with psycopg.connect(runtime.db.url) as connection:
        scope_id, embedder_id = connection.execute(
            "select scope_id, embedder_id from semcache.embedding where entry_id = %s", (first.stored.entry_id,)
        ).fetchone() or (0, 0)
    if kind is not None:
        await build(worker, LargeScope(embedder_id, stock.vectors.shape[1], scope_id, stock.size, kind))
    embedder = EmbedderId(embedder_id)
    scope = ScopeRow(ScopeId(scope_id), [embedder] if kind else [])
    return Ours(runtime.db, cache.row, scope, embedder, stock)


async def start_peer(python: str, name: str, folder: Path, stock: Stock) -> Peer:
    """Raises SystemExit with the reason where the peer cannot start."""
    np.save(folder / "vectors.npy", stock.vectors)
    np.save(folder / "queries.npy", stock.queries)
    script, *kind = PEERS[name]
    errors = folder / "errors"
    with errors.open("w") as stderr:
        process = await create_subprocess_exec(
            python,
            HERE / script,
            str(stock.size),
            *kind,
            cwd=folder,
            stdin=PIPE,
            stdout=PIPE,
            stderr=stderr,
            limit=LINE,
        )
    peer = Peer(process, errors)
    print(f"{name}: {await peer.read()}", flush=True)
    return peer


async def in_turns(ways: dict[str, Way], size: int, args: argparse.Namespace) -> dict[str, Figures]:
    figures = {name: Figures() for name in ways}
    for way in ways.values():
        await way.run("look", 0, WARM, 1)
    for first in range(0, args.rounds * args.calls, args.calls):
        for clients in CLIENTS:
            for name, way in ways.items():
                figures[name].lookups[clients].append(await way.run("look", first, args.calls, clients))
    for first in range(size, size + args.rounds * args.calls, args.calls):
        for name, way in ways.items():
            figures[name].inserts.append(await way.run("insert", first, args.calls, 1))
    return figures


async def compare(runtime: Runtime, worker: Database, stock: Stock, args: argparse.Namespace) -> list[list[Any]]:
    hits = stock.hits(args.floor)
    print(f"\n{stock.size} entries; {len(hits)} of {len(stock.queries)} queries are hits", flush=True)
    ways: dict[str, Way] = {name: await start_ours(runtime, worker, name, stock) for name in OURS}
    with ExitStack() as folders:
        try:
            for name in PEERS:
                if name == "GPTCache" and stock.size > args.gptcache_limit:
                    continue
                folder = Path(folders.enter_context(tempfile.TemporaryDirectory(prefix="semcache-peer-")))
                try:
                    ways[name] = await start_peer(args.peers_python, name, folder, stock)
                except SystemExit as reason:
                    print(f"{name} is left out: {reason}", flush=True)
            figures = await in_turns(ways, stock.size, args)
        finally:
            for way in ways.values():
                await way.close()
    rows = [shown.row(name, stock, hits) for name, shown in figures.items()]
    print(table(HEADERS, rows), flush=True)
    return rows


async def main(args: argparse.Namespace) -> None:
    rows: list[list[Any]] = []
    with own_database() as url:
        runtime = build_runtime(Settings(database_url=url), Database(url, Limits(timeout=PATIENCE)))
        worker = Database(url, Limits(bulk_timeout=3600), role="semcache_worker")
        await runtime.start()
        await worker.open()
        while not runtime.embedder.tried:  # noqa: ASYNC110 - the slot tells of nothing else
            await asyncio.sleep(0.05)
        real = await embed_all(runtime, texts()[: args.texts])
        for size in args.sizes:
            rows += await compare(runtime, worker, Stock.of(real, size, args.rounds * args.calls), args)
        await worker.close()
        await runtime.stop()
    print()
    print(table(HEADERS, rows))
    write_json(args.json, [dict(zip(HEADERS, row, strict=True)) for row in rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("--peers-python", default=sys.executable, help="the interpreter that has the peers installed")
    parser.add_argument("--sizes", type=numbers, default=[1_000, 10_000, 100_000])
    parser.add_argument("--gptcache-limit", type=int, default=10_000, help="most entries that GPTCache is given")
    parser.add_argument("--texts", type=int, default=10_000, help="most texts that are embedded")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=100, help="lookups of each round, and inserts")
    parser.add_argument("--floor", type=float, default=0.9)
    parser.add_argument("--json")
    asyncio.run(main(parser.parse_args()))
