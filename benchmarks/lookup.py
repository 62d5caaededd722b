"""What a lookup costs: by tier, by size of the scope and by number of clients, beside its floor in the same run.

Over HTTP the floor is the same framework and server doing only what cannot be left out (`floor.py`): for an exact
hit the bare prepared look-up, for a semantic one bare ONNX Runtime, that look-up and the bare neighbour query. Inside
the process the floor is the same without HTTP. Nothing is remembered but where the row says L1.

    python benchmarks/lookup.py [--sizes 1000,10000,100000] [--clients 1,4,16] [--calls 400] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from socket import create_server
from typing import Any

import httpx
import numpy as np
import psycopg
from floor import BareModel, Floor
from pgvector.psycopg import register_vector_async
from setting import Times, drive, fill, own_database, post, questions, spread, table, write_json

from service.cache.data import Prompt, search
from service.cache.directory import authenticate, open_cache
from service.cache.runtime import Runtime, build_runtime
from service.settings import Settings
from service.store.database import Database, Limits
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
        row = [what, size, clients, times.p50, times.percentile(0.99), times.rate, ratio or ""]
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
        """Medians in milliseconds of the floor inside a process."""
        connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)
        await register_vector_async(connection)
        floor = Floor(connection, BareModel(self.settings.models_dir), self.settings.ivfflat_probes)
        await floor.open_cache(f"size-{size}")
        calls: dict[str, Callable[[int], Awaitable[Any]]] = {
            "select 1": lambda _: floor.select(),
            "exact": lambda n: floor.exact(self.questions[n % STORED]),
            "near": lambda n: floor.near(POLITE + self.questions[n % STORED]),
        }
        found = {}
        for name, call in calls.items():
            times = await timed(call, self.args.calls)
            self.note(f"inside: floor {name}", size, 1, times)
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
        self.note("inside: exact hit", size, 1, await timed(exact, self.args.calls), floors["exact"])
        self.note("inside: semantic hit", size, 1, await timed(ask(POLITE), self.args.calls), floors["near"])

    async def outside(self, ports: dict[str, int], size: int, clients: int) -> None:
        path = f"/v1/caches/size-{size}/entries/search"
        calls = self.args.calls
        hit, miss = (lambda body: b'"id":' in body), (lambda body: b'"data":[]' in body)

        def bodies(path: str, prefix: str, **more: Any) -> list[bytes]:
            return [post(path, {"prompt": prefix + self.questions[n % STORED], **more}) for n in range(calls)]

        async def run(what: str, where: str, requests: list[bytes], check: Check, floor: Times | None = None) -> Times:
            await asyncio.to_thread(drive, ports[where], clients, requests[:50], check)
            times = await asyncio.to_thread(drive, ports[where], clients, requests, check)
            self.note(f"HTTP: {what}", size, clients, times, floor.p50 if floor else None)
            return times

        def anything(body: bytes) -> bool:
            return bool(body)

        drive(ports["floor"], 1, [post(f"/open/size-{size}", {})], anything)
        empty = await run("floor empty", "floor", bodies("/empty", ""), anything)
        exact = await run("floor exact", "floor", bodies("/exact", ""), anything)
        near = await run("floor near", "floor", bodies("/near", POLITE), anything)
        drive(ports["service"], 1, bodies(path, "")[:STORED], hit)
        await run("L1 hit", "service", bodies(path, ""), hit, empty)
        await run("exact hit", "cold", bodies(path, ""), hit, exact)
        await run("semantic hit", "service", bodies(path, POLITE), hit, near)
        await run("miss", "service", bodies(path, POLITE, similarityThreshold=1.0), miss, near)


Check = Callable[[bytes], bool]
HEADERS = ("what", "entries", "clients", "p50 ms", "p99 ms", "per second", "times floor")


SERVICE = ("-c", "from service.cli import main; main()", "serve")
FLOOR = (str(Path(__file__).with_name("floor.py")),)


def start(
    url: str, what: Sequence[str], ready: str, *, python: str = sys.executable, folder: str | None = None, **more: str
) -> tuple[subprocess.Popen[bytes], int]:
    """A process that serves HTTP, and its port."""
    with create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    own = ({"SEMCACHE_DATABASE_URL": url} if url else {}) | {
        "SEMCACHE_EMBEDDER_MEMORY": "0",
        "SEMCACHE_PORT": str(port),
    }
    env = os.environ | own | more
    process = subprocess.Popen([python, *what], cwd=folder, env=env, stdout=subprocess.DEVNULL)
    for _ in range(600):
        try:
            if httpx.get(f"http://127.0.0.1:{port}{ready}").status_code == 200:
                return process, port
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise SystemExit("the service did not become ready")


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def cpu_seconds(pid: int) -> float:
    """What a process has taken of the CPU so far, its children not counted."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def main(args: argparse.Namespace) -> None:
    with own_database() as url:
        bench = Bench(url, args)
        processes = {
            "service": start(url, SERVICE, "/readyz"),
            "cold": start(url, SERVICE, "/readyz", SEMCACHE_L1_ENTRIES="0"),
            "floor": start(url, FLOOR, "/docs"),
        }
        ports = {name: port for name, (_, port) in processes.items()}
        runtime = build_runtime(bench.settings, Database(url, Limits()))
        await runtime.start()
        while not runtime.embedder.tried:  # noqa: ASYNC110 - the slot tells of nothing else
            await asyncio.sleep(0.05)
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{ports['service']}", timeout=60) as http:
                await bench.prepare(runtime, http)
            for size in args.sizes:
                floors = await bench.floors(size)
                await bench.inside(runtime, size, floors)
                for clients in args.clients:
                    await bench.outside(ports, size, clients)
            print(f"resident memory of the service with the model: {resident_mb(processes['service'][0].pid):.0f} MB")
        finally:
            await runtime.stop()
            for child, _ in processes.values():
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
