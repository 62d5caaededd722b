"""What a real vLLM is asked, how often, and what passes through as it is."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from calls import Cache
from openai import AsyncOpenAI, BadRequestError
from running import Service

from tests.vllm.said import Said, ask_chat, kept
from tests.vllm.server import MODEL, Vllm

TALK: Any = [{"role": "user", "content": "Which knot holds best?"}]
# Long enough to be left in the middle, and it ends by itself.
LONG: dict[str, Any] = {"seed": 1, "min_tokens": 1500, "max_tokens": 2000}
CHAT = "/v1/chat/completions"


async def leave_early(client: AsyncOpenAI, headers: dict[str, str] | None = None, **fields: Any) -> None:
    """Ask for a stream and go after its first words."""
    stream = await client.chat.completions.create(
        model=MODEL, messages=TALK, stream=True, extra_body=fields, extra_headers=headers
    )
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            break
    await stream.close()


async def test_equal_requests_at_once_are_one_request(vllm: Vllm, cached: AsyncOpenAI) -> None:
    before = vllm.metric("vllm:request_success_total")
    said = await asyncio.gather(*(ask_chat(cached, TALK, seed=2, stream=stream) for stream in (True, False) * 4))
    assert vllm.metric("vllm:request_success_total") == before + 1
    assert sorted({one.cache for one in said if one.cache != "HIT"}, key=str) == ["COALESCED", "MISS"]
    assert all(one == said[0] for one in said)


async def test_a_client_that_leaves_does_not_cut_the_answer(direct: AsyncOpenAI, cached: AsyncOpenAI) -> None:
    await leave_early(cached, **LONG)
    said = await kept(lambda: ask_chat(cached, TALK, **LONG))
    new = await ask_chat(direct, TALK, **LONG)
    assert said == new
    assert said.choices[0].finish == "stop"
    assert said.usage
    assert said.usage["completion_tokens"] > LONG["min_tokens"]


async def test_a_client_that_leaves_past_the_cache_frees_the_model(
    vllm: Vllm, direct: AsyncOpenAI, cached: AsyncOpenAI
) -> None:
    before = vllm.metric("vllm:generation_tokens_total")
    await leave_early(cached, headers={"x-cache-mode": "off"}, **LONG)
    running = 1.0
    async with asyncio.timeout(20):
        while running:
            await ask_chat(direct, TALK, max_tokens=1)  # metrics are written as something is generated
            running = vllm.metric("vllm:num_requests_running")
    assert 0 < vllm.metric("vllm:generation_tokens_total") - before < LONG["min_tokens"]


async def test_priority_and_session_reach_the_model_and_split_nothing(cached: AsyncOpenAI, cache: Cache) -> None:
    async def ask(priority: int) -> Said:
        headers = {"X-Vllm-Priority": str(priority), "X-Session-ID": f"talk-{priority}"}
        return await ask_chat(cached, TALK, seed=2, priority=priority, extra_headers=headers)

    first = await ask(3)
    assert first.cache == "MISS"
    assert await kept(lambda: ask(-1)) == first
    with pytest.raises(BadRequestError) as refused:
        await ask_chat(cached, TALK, seed=3, priority="soon")
    assert "priority" in str(refused.value)


async def test_the_callers_request_id_is_the_models_too(cached: AsyncOpenAI) -> None:
    named = {"X-Request-Id": "ferry-1"}
    missed = await ask_chat(cached, TALK, seed=2, extra_headers=named)
    again = await kept(lambda: ask_chat(cached, TALK, seed=2, extra_headers=named))
    assert missed.id == "chatcmpl-ferry-1"
    assert again.id != missed.id
    assert missed.headers["x-request-id"] == again.headers["x-request-id"] == "ferry-1"


async def test_a_salt_separates(cached: AsyncOpenAI) -> None:
    said = [await ask_chat(cached, TALK, seed=2, cache_salt=salt) for salt in ("one", "other")]
    assert [one.cache for one in said] == ["MISS", "MISS"]


@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
def test_the_log_has_the_session_and_vllms_own_figures(proxy: Service, cache: Cache, stream: bool) -> None:
    session = uuid4().hex
    headers = {"x-cache-namespace": cache.name, "x-session-id": session}
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    got = proxy.http.post(CHAT, json={"model": MODEL, "messages": TALK, "seed": 2} | options, headers=headers)
    body = json.loads(got.text.split("data: ")[-2]) if stream else got.json()
    outcome, spent, cost = logged(proxy, session)
    assert (outcome, spent) == ("miss", body["usage"]["total_tokens"])
    took = body["metrics"]["time_to_first_token_ms"] + body["metrics"]["generation_time_ms"]
    assert cost == pytest.approx(took, rel=1e-5)


def logged(proxy: Service, session: str) -> tuple[Any, ...]:
    """The session's only line in the request log, once it is written."""
    url = proxy.runtime.settings.database_url
    assert url
    query = "select outcome, tokens_spent, cost_ms from semcache.request_log where session = %s"
    end = time.monotonic() + 10
    with psycopg.connect(url.get_secret_value(), autocommit=True) as connection:
        while time.monotonic() < end:
            if row := connection.execute(query, (session,)).fetchone():
                return row
    raise AssertionError("nothing was logged")


ERRORS: dict[str, tuple[str, str, bytes]] = {
    "value": ("POST", CHAT, b'{"model": "tiny", "temperature": -3, "messages": [{"role": "user", "content": "a"}]}'),
    "schema": ("POST", CHAT, b'{"model": "tiny", "messages": 7}'),
    "too long": ("POST", "/v1/completions", b'{"model": "tiny", "prompt": "' + b"knot " * 2000 + b'"}'),
    "model": ("POST", CHAT, b'{"model": "other", "messages": [{"role": "user", "content": "a"}]}'),
    "no json": ("POST", CHAT, b'{"model": '),
    "no tools": ("POST", CHAT, b'{"model": "tiny", "tools": [], "messages": [{"role": "user", "content": "a"}]}'),
    "route": ("GET", "/v1/nothing", b""),
    "method": ("GET", CHAT, b""),
    "response": ("GET", "/v1/responses/resp_1", b""),
    "vectors": ("POST", "/v1/embeddings", b'{"model": "tiny", "input": "a"}'),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_pass_as_they_are(vllm: Vllm, proxy: Service, cache: Cache, kind: str) -> None:
    method, path, body = ERRORS[kind]
    headers = {"content-type": "application/json", "x-cache-namespace": cache.name}
    with httpx.Client() as http:
        said, passed = (
            http.request(method, f"{root}{path}", content=body, headers=headers) for root in (vllm.root, proxy.base)
        )
    assert said.status_code >= 400
    assert (passed.status_code, passed.content) == (said.status_code, said.content)
    assert passed.headers["content-type"] == said.headers["content-type"]
    assert passed.headers["x-cache"] in ("MISS", "BYPASS")


def test_models_are_listed(vllm: Vllm, proxy: Service) -> None:
    said, passed = (httpx.get(f"{root}/v1/models").json()["data"] for root in (vllm.root, proxy.base))
    for card in (*said, *passed):
        del card["created"], card["permission"]
    assert passed == said
    assert [card["id"] for card in passed] == [MODEL]


@pytest.mark.parametrize("path", ["/tokenize", "/detokenize", "/version", "/server_info", "/pooling", "/load"])
@pytest.mark.parametrize("prefix", ["", "/v1/..", "/v1/%2e%2e", "/v1/x/..%2f.."])
def test_what_vllm_leaves_open_is_not_opened_here(proxy: Service, path: str, prefix: str) -> None:
    url = httpx.URL(proxy.base).copy_with(raw_path=f"{prefix}{path}".encode())
    with httpx.Client() as http:
        got = http.post(url, json={"model": MODEL, "prompt": "a"})
    assert got.status_code == 404
    assert "tokens" not in got.text
