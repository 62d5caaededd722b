"""A model server that takes 200 ms for every answer: the first words after 50 ms, the rest evenly. For `proxy.py`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

FIRST, REST, PIECES = 0.05, 0.15, 10
WORDS = "An answer of a few words, as models give them. "
USAGE = {"prompt_tokens": 20, "completion_tokens": 12 * PIECES, "total_tokens": 20 + 12 * PIECES}

app = FastAPI()


def _chunk(number: int, delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": "small"}
    return b"data: " + json.dumps(head | {"choices": [choice]}).encode() + b"\n\n"


async def _stream(number: int, usage: bool) -> AsyncIterator[bytes]:
    await asyncio.sleep(FIRST)
    yield _chunk(number, {"role": "assistant", "content": ""})
    for _ in range(PIECES):
        yield _chunk(number, {"content": WORDS})
        await asyncio.sleep(REST / PIECES)
    yield _chunk(number, {}, "stop")
    if usage:
        head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": "small"}
        yield b"data: " + json.dumps(head | {"choices": [], "usage": USAGE}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


@app.post("/v1/chat/completions")
async def complete(request: Request) -> Response:
    body = await request.json()
    number = id(body)
    if body.get("stream"):
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return StreamingResponse(_stream(number, usage), media_type="text/event-stream")
    await asyncio.sleep(FIRST + REST)
    message = {"role": "assistant", "content": WORDS * PIECES}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    whole = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": "small"}
    return Response(json.dumps(whole | {"choices": [choice], "usage": USAGE}), media_type="application/json")


@app.get("/v1/models")
async def models() -> dict[str, object]:
    return {"object": "list", "data": [{"id": "small", "object": "model", "created": 1, "owned_by": "bench"}]}


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["SEMCACHE_PORT"]), log_level="warning", access_log=False)
