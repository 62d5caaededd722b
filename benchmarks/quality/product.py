"""`python -m benchmarks.quality.product [STREAM]`: a stream through the product, beside the replay of its policy.

Every request is asked through the proxy, before a model server that knows the answers. The first half runs under a
budget that no number of labels meets, so misses are observed and nothing is served by similarity; then the cache gets
its budget, the worker fits, and the second half is served. What the product serves must agree with the replay, whose
word counts follow each store while the product's are those of the last fit.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request

from benchmarks.quality.data import ROOT
from benchmarks.quality.replay import Step
from benchmarks.quality.streams import Bench, Row
from service.api.app import create_app
from service.cache.runtime import Runtime
from service.policy.boundary import Budget, Per
from service.settings import Settings
from service.store import migrate
from service.store.database import Database, Limits
from service.store.embedded import EmbeddedPostgres
from workers import calibrate

UNMET = {"rate": 0.0001}
WINDOW, MOST = timedelta(days=30), 20_000
COUNT_EVERY = 500


def model_server(answers: Mapping[str, str]) -> FastAPI:
    """Answers the last message of a chat from a table."""
    app = FastAPI()

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "bench"}]}

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> dict[str, Any]:
        asked = (await request.json())["messages"][-1]["content"]
        message = {"role": "assistant", "content": answers[asked]}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    return app


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[str]:
    """The address of the app, in this event loop."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it tells of nothing else
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await running


@asynccontextmanager
async def product(url: str, upstream: str) -> AsyncIterator[tuple[httpx.AsyncClient, Runtime]]:
    """A client of the service, which runs in this event loop."""
    app = create_app(Settings(database_url=url, upstream=f"{upstream}/v1", embedder_memory=100_000), url)
    async with app.router.lifespan_context(app):
        runtime: Runtime = app.state.runtime
        while not runtime.embedder.tried:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            yield client, runtime


async def ask(client: httpx.AsyncClient, runtime: Runtime, text: str) -> tuple[str, str]:
    """What became of a request, and its answer; all that it sets going is done."""
    body = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": text}]}
    got = await client.post("/v1/chat/completions", json=body, headers={"x-cache-namespace": "stream"})
    while runtime.background or runtime.observer.chores:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.001)
    return got.headers["x-cache"], got.json()["choices"][0]["message"]["content"]


async def replay_through(bench: Bench, budget: Budget, url: str) -> list[Step]:
    """Each request of the stream as the product served it."""
    worker = Database(url, Limits(pool_min=1, timeout=60, bulk_timeout=600), role="semcache_worker")
    await worker.open()
    steps = []
    answers = {r.text: r.answer for r in bench.stream.requests}
    async with served(model_server(answers)) as upstream, product(url, upstream) as (client, runtime):
        policy = {"decision": "calibrated", "compare": "equality", "budget": UNMET}
        (await client.post("/v1/caches", json={"name": "stream", "policy": policy})).raise_for_status()
        for at, request in enumerate(bench.stream.requests):
            if at == bench.half:
                change = {"policy": {"budget": asdict(budget)}}
                (await client.patch("/v1/caches/stream", json=change)).raise_for_status()
            if at == bench.half or (at < bench.half and at % COUNT_EVERY == 0):
                print(at, await calibrate.run_once(worker, WINDOW, MOST), flush=True)
            became, answer = await ask(client, runtime, request.text)
            hit = became in ("HIT", "SEMANTIC-HIT")
            steps.append(Step(at, request, became == "HIT", answer if hit else None, ()))
        print((await client.get("/v1/caches/stream/stats")).json()["calibrations"])
    await worker.close()
    return steps


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "stream_open"
    bench = Bench(name)
    budget = Budget(0.01, Per.SERVED_HIT)
    replayed, pure = bench.learned("trees", budget)
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(Path(folder), durable=False) as server:
        migrate.upgrade(server.url)
        steps = asyncio.run(replay_through(bench, budget, server.url))
    rows = [replayed, Row("through the product", budget.rate, budget.per.value, None, bench.measure(steps))]
    for row in rows:
        f = row.figures
        print(
            f"{row.policy:24s} hits {f.hit_rate:6.1%}  headroom {f.headroom:6.1%}  false per served "
            f"{f.false_per_served.value:6.2%}  per semantic {f.false_per_semantic.value:6.2%} of {f.semantic_hits}"
        )
    apart = sum(a.served != b.served for a, b in zip(pure, steps, strict=True))
    print(f"{apart} of {len(steps)} requests were served otherwise than in the replay")
    target = ROOT / "benchmarks" / "results" / f"quality-product-{name}.json"
    target.write_text(json.dumps([asdict(row) for row in rows] + [{"apart": apart}], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
