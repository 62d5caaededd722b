"""What a lookup costs: by tier, by size of the scope and by number of clients, beside its floor in the same run.

The floor of an exact hit is a bare prepared psycopg round trip plus the framework's empty endpoint; that of a semantic hit
is bare ONNX Runtime plus that round trip plus the bare SQL. Inside the process there is no HTTP.

    python benchmarks/lookup.py [--sizes 1000,10000,100000] [--clients 1,4,16] [--calls 400] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector_async
from setting import Times, drive, fill, get, own_database, post, questions, spread, table, write_json
from tokenizers import Tokenizer

from service.cache.data import Prompt, search
from service.cache.directory import authenticate, open_cache
from service.cache.runtime import Runtime, build_runtime
from service.settings import Settings
from service.store.database import Database, Limits
from service.store.queries import query
from workers.index_care import run_once as care_for_indexes

POLITE = "Please tell me: "
STORED = 500
LOW = 0.6  # every polite form of a stored question is a hit at this threshold


async def timed(call: Callable[[int], Awaitable[Any]], calls: int) -> Times:
    times = Times()
    for number in range(min(50, calls)):
        await call(number)
    begun = time.perf_counter()
    for number in range(calls):
        start = time.perf_counter()
        await call(number)
        times.seconds.append(time.perf_counter() - start)
    times.wall = time.perf_counter() - begun
    return times


class Bench:
    """One database, one cache for each size, and the ways into it."""

    def __init__(self, url: str, args: argparse.Namespace) -> None:
        self.url, self.args = url, args
        self.settings = Settings(database_url=url, embedder_memory=0)
        self.rows: list[list[Any]] = []
        self.questions = questions(STORED)

    def note(self, what: str, size: int | str, clients: int | str, times: Times, floor: float | None = None) -> None:
        ratio = times.p50 / floor if floor else None
        row = [what, size, clients, times.p50, times.percentile(0.99), times.rate, ratio if ratio else ""]
        self.rows.append(row)
        print(table(HEADERS, [row]).splitlines()[-1], flush=True)

    async def prepare(self, runtime: Runtime, http: httpx.AsyncClient) -> None:
        vectors = np.stack([(await runtime.embedder.embed(text))[0] for text in self.questions])
        for size in self.args.sizes:
            cache = f"size-{size}"
            await http.post("/v1/caches", json={"name": cache, "policy": {"similarityThreshold": LOW}})
            for text in self.questions:
                stored = await http.post(f"/v1/caches/{cache}/entries", json={"prompt": text, "response": text})
            fill(self.url, like=stored.json()["entryId"], vectors=spread(vectors, size - STORED))
        worker = Database(self.url, Limits(bulk_timeout=3600), role="semcache_worker")
        await worker.open()
        begun = time.perf_counter()
        built = await care_for_indexes(worker, self.settings.exact_scan_limit)
        print(f"indexes {built.built} in {time.perf_counter() - begun:.1f} s")
        await worker.close()

    async def floors(self, size: int) -> dict[str, float]:
        """Medians in milliseconds of what cannot be avoided."""
        connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)
        await register_vector_async(connection)
        row = await (
            await connection.execute(
                "select s.scope_id, s.tenant_id, s.ann_index, v.embedder_id from semcache.cache c join semcache.scope s using (cache_id) "
                "join semcache.embedding v using (scope_id) where c.name = %s limit 1",
                (f"size-{size}",),
            )
        ).fetchone()
        assert row is not None
        scope_id, tenant_id, ann, embedder_id = row
        session, tokenizer = bare_model(self.settings.models_dir)
        vector = bare_embed(session, tokenizer, POLITE + self.questions[0])

        async def round_trip(_: int) -> None:
            await (await connection.execute("select 1", prepare=True)).fetchone()

        async def sql(number: int) -> None:
            values = {
                "tenant_id": tenant_id,
                "scope_id": scope_id,
                "embedder_id": embedder_id,
                "vector": HalfVector(vector),
                "attributes": "{}",
                "neighbours": 4,
                "born_after": None,
            }
            text = (
                query("find_neighbours")
                if not ann
                else query("find_neighbours_indexed").format(
                    dimensions=len(vector), scope_id=scope_id, embedder_id=embedder_id
                )
            )
            await (await connection.execute(text, values, prepare=True)).fetchall()

        async def embed(number: int) -> None:
            bare_embed(session, tokenizer, POLITE + self.questions[number % STORED])

        if ann:
            await connection.execute("set ivfflat.probes = %s" % self.settings.ivfflat_probes)
            await connection.execute("set ivfflat.iterative_scan = 'relaxed_order'")
        found = {}
        for name, call in {"round trip": round_trip, "bare SQL": sql, "bare embedding": embed}.items():
            times = await timed(call, self.args.calls)
            self.note(f"floor: {name}", size if name == "bare SQL" else "", 1, times)
            found[name] = times.p50
        await connection.close()
        return found

    async def inside(self, runtime: Runtime, size: int, floors: dict[str, float]) -> None:
        tenant = await authenticate(runtime, None)
        cache = await open_cache(runtime, tenant, f"size-{size}")

        def ask(prefix: str) -> Callable[[int], Awaitable[Any]]:
            async def call(number: int) -> None:
                found = await search(runtime, cache, Prompt(prefix + self.questions[number % STORED], {}, {}))
                assert found.found

            return call

        async def exact(number: int) -> None:
            runtime.memory.forget(cache.row.cache_id, None)
            found = await search(runtime, cache, Prompt(self.questions[number % STORED], {}, {}))
            assert found.strategy == "exact"

        once = ask("")
        for number in range(STORED):
            await once(number)
        self.note("inside: L1 hit", size, 1, await timed(once, self.args.calls))
        self.note("inside: exact hit", size, 1, await timed(exact, self.args.calls), floors["round trip"])
        floor = floors["bare embedding"] + floors["round trip"] + floors["bare SQL"]
        self.note("inside: semantic hit", size, 1, await timed(ask(POLITE), self.args.calls), floor)

    async def outside(self, port: int, cold_port: int, size: int, clients: int, floors: dict[str, float]) -> None:
        path = f"/v1/caches/size-{size}/entries/search"
        calls = self.args.calls
        hit, miss = (lambda body: b'"id":' in body), (lambda body: b'"data":[]' in body)

        def searches(prefix: str, **more: Any) -> list[bytes]:
            return [post(path, {"prompt": prefix + self.questions[n % STORED], **more}) for n in range(calls)]

        async def run(where: int, requests: list[bytes], check: Callable[[bytes], bool]) -> Times:
            await asyncio.to_thread(drive, where, clients, requests[:50], check)
            return await asyncio.to_thread(drive, where, clients, requests, check)

        empty = await run(port, [get("/healthz")] * calls, lambda body: b"ok" in body)
        self.note("empty endpoint", "", clients, empty)
        single = clients == 1
        await run(port, searches(""), hit)
        self.note("HTTP: L1 hit", size, clients, await run(port, searches(""), hit))
        exact_floor = floors["round trip"] + empty.p50 if single else None
        self.note("HTTP: exact hit", size, clients, await run(cold_port, searches(""), hit), exact_floor)
        semantic_floor = floors["bare embedding"] + floors["round trip"] + floors["bare SQL"] if single else None
        self.note("HTTP: semantic hit", size, clients, await run(port, searches(POLITE), hit), semantic_floor)
        strict = searches(POLITE, similarityThreshold=1.0)
        self.note("HTTP: miss", size, clients, await run(port, strict, miss))


HEADERS = ("what", "entries", "clients", "p50 ms", "p99 ms", "per second", "× floor")


def bare_model(models_dir: Path) -> tuple[Any, Any]:
    from service.embed.models import find_model

    kept = models_dir / find_model(None).revision
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(kept / "model.onnx", options, providers=["CPUExecutionProvider"])
    return session, Tokenizer.from_file(str(kept / "tokenizer.json"))


def bare_embed(session: Any, tokenizer: Any, text: str) -> Any:
    encoding = tokenizer.encode(text)
    known = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
    inputs = {i.name: np.array([known[i.name]], dtype=np.int64) for i in session.get_inputs()}
    return session.run(None, inputs)[0][0]


def serve(url: str, **more: str) -> tuple[subprocess.Popen[bytes], int]:
    environment = os.environ | {"SEMCACHE_DATABASE_URL": url, "SEMCACHE_EMBEDDER_MEMORY": "0", **more}
    from socket import create_server

    with create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from service.cli import main; main()", "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    for _ in range(600):
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                return process, port
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise SystemExit("the service did not become ready")


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def main(args: argparse.Namespace) -> None:
    with own_database() as url:
        bench = Bench(url, args)
        process, port = serve(url)
        cold, cold_port = serve(url, SEMCACHE_L1_ENTRIES="0")
        runtime = build_runtime(bench.settings, Database(url, Limits()))
        await runtime.start()
        while not runtime.embedder.tried:
            await asyncio.sleep(0.05)
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
                await bench.prepare(runtime, http)
            for size in args.sizes:
                floors = await bench.floors(size)
                await bench.inside(runtime, size, floors)
                for clients in args.clients:
                    await bench.outside(port, cold_port, size, clients, floors)
            print(f"resident memory of the service with the model: {resident_mb(process.pid):.0f} MB")
        finally:
            await runtime.stop()
            for child in (process, cold):
                child.terminate()
                child.wait()
    print()
    print(table(HEADERS, bench.rows))
    write_json(args.json, [dict(zip(HEADERS, row, strict=True)) for row in bench.rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("--sizes", type=numbers, default=[1_000, 10_000, 100_000])
    parser.add_argument("--clients", type=numbers, default=[1, 4, 16])
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--json")
    asyncio.run(main(parser.parse_args()))
