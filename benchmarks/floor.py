"""The least that a lookup over HTTP can cost: the same framework, and in each route only what cannot be left out.

`/empty` does nothing, `/select` asks Postgres for 1, `/exact` runs the bare look-up on a connection of its own, `/near`
embeds a text with bare ONNX Runtime and runs the bare look-up and the bare neighbour query.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
import psycopg
import uvicorn
from fastapi import FastAPI, Request, Response
from pgvector import HalfVector
from pgvector.psycopg import register_vector_async
from psycopg.types.json import Jsonb
from tokenizers import Tokenizer

from service.embed.models import find_model
from service.settings import Settings
from service.store.queries import numbered, query

KNOWN = """
select s.tenant_id, s.cache_id, s.scope_id, s.scope_key, exists (
    select from semcache.vector_index a where a.scope_id = s.scope_id and a.embedder_id = v.embedder_id
), v.embedder_id, e.exact_key, e.prompt
from semcache.cache c
join semcache.scope s using (cache_id)
join semcache.entry e using (scope_id)
join semcache.embedding v using (entry_id)
where c.name = %s and e.provenance = 'client'
"""


class BareModel:
    """Tokenizer and session, nothing else."""

    def __init__(self, models_dir: Path) -> None:
        kept = models_dir / find_model(None).revision
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(kept / "model.onnx", options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(kept / "tokenizer.json"))

    def embed(self, text: str) -> Any:
        got = self._tokenizer.encode(text)
        known = {"input_ids": got.ids, "attention_mask": got.attention_mask, "token_type_ids": got.type_ids}
        inputs = {i.name: np.array([known[i.name]], dtype=np.int64) for i in self._session.get_inputs()}
        return self._session.run(None, inputs)[0][0]


NEIGHBOURS = 4


class Floor:
    """A connection and a model, and the statements of one cache."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], model: BareModel, probes: int) -> None:
        self.connection, self.model, self.probes = connection, model, probes

    async def open_cache(self, name: str) -> None:
        rows = await (await self.connection.execute(KNOWN, (name,))).fetchall()
        tenant_id, cache_id, scope_id, scope_key, ann, embedder_id = rows[0][:6]
        self.keys = {row[7]: row[6] for row in rows}
        self.common = {
            "tenant_id": tenant_id,
            "cache_id": cache_id,
            "attributes": Jsonb({}),
            "max_age": None,
            "min_ttl": 0.0,
            "client_answers": True,
        }
        self.scope = {"scope_id": scope_id, "embedder_id": embedder_id}
        self.scope_key = scope_key
        self.neighbours: Any = query("find_neighbours")
        if ann:
            dimensions = len(self.model.embed("any"))
            self.neighbours = numbered(
                "find_neighbours_indexed", dimensions=dimensions, neighbours=NEIGHBOURS, **self.scope
            )
        await self.connection.execute(f"set ivfflat.probes = {self.probes}")
        await self.connection.execute("set ivfflat.iterative_scan = 'relaxed_order'")

    async def select(self) -> Any:
        return await (await self.connection.execute("select 1", prepare=True)).fetchone()

    async def exact(self, text: str) -> Any:
        values = self.common | {"scope_key": self.scope_key, "exact_key": self.keys.get(text, b"0"), "answers": 1}
        return await (await self.connection.execute(query("find_exact"), values, prepare=True)).fetchone()

    async def near(self, text: str) -> Any:
        await self.exact(text)
        vector = HalfVector(self.model.embed(text))
        values = self.common | self.scope | {"vector": vector, "neighbours": NEIGHBOURS}
        return await (await self.connection.execute(self.neighbours, values, prepare=True)).fetchall()


def create_floor(url: str) -> FastAPI:
    settings = Settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await register_vector_async(connection)
            app.state.floor = Floor(connection, BareModel(settings.models_dir), settings.ivfflat_probes)
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/open/{name}")
    async def open_cache(name: str, request: Request) -> Response:
        await request.app.state.floor.open_cache(name)
        return Response(b"ok")

    @app.post("/empty")
    async def empty(request: Request) -> Response:
        return Response(b"ok")

    @app.post("/select")
    async def select(request: Request) -> Response:
        await request.app.state.floor.select()
        return Response(b"ok")

    @app.post("/exact")
    async def exact(request: Request) -> Response:
        row = await request.app.state.floor.exact((await request.json())["prompt"])
        return Response(row[-3])

    @app.post("/near")
    async def near(request: Request) -> Response:
        rows = await request.app.state.floor.near((await request.json())["prompt"])
        return Response(rows[0][9])

    return app


if __name__ == "__main__":
    uvicorn.run(
        create_floor(os.environ["SEMCACHE_DATABASE_URL"]),
        port=int(os.environ["SEMCACHE_PORT"]),
        log_level="warning",
        access_log=False,
    )
