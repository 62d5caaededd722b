"""What is not cached passes as it came, in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from asking import Asker, asked, chat, says

from service.settings import UpstreamTarget
from tests.fakes.upstream import FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_any_method_and_path_passes(upstream: FakeUpstream, asker: Asker, method: str) -> None:
    upstream.on("/v1/echo/a%2Fb", Reply(status=207, json={"said": method}, headers={"x-echo": "yes"}))
    body = b"some bytes \xff" if method != "GET" else b""
    got = await asker.http.request(method, "/v1/echo/a%2Fb?depth=3&x=%20", content=body)
    call = upstream.calls[-1]
    assert (got.status_code, got.json(), got.headers["x-echo"]) == (207, {"said": method}, "yes")
    assert (call.method, call.target, call.body) == (method, "/v1/echo/a%2Fb?depth=3&x=%20", body)
    assert (got.headers["x-cache"], got.headers["x-cache-reason"]) == ("BYPASS", "route")
    assert len(got.headers.get_list("x-request-id")) == 1


async def test_models_are_the_model_servers_and_controls_do_not_reach_it(upstream: FakeUpstream, asker: Asker) -> None:
    upstream.on("/v1/models", Reply(json={"data": [{"id": "small-chat"}]}))
    got = await asker.http.get("/v1/models", headers={"x-cache-ttl": "9", "authorization": "Bearer mine"})
    assert got.json() == {"data": [{"id": "small-chat"}]}
    assert not {name for name, _ in upstream.calls[-1].headers} & {"x-cache-ttl", "authorization"}


async def test_bodies_pass_unbuffered(upstream: FakeUpstream, asker: Asker) -> None:
    gate, more = asyncio.Event(), asyncio.Event()
    upstream.on("/v1/audio/speech", Reply(chunks=[b"first ", b"last"], gates={1: gate}))
    upstream.on("/v1/files", Reply(json={"id": "file-1"}))

    async def upload() -> AsyncIterator[bytes]:
        yield b"a" * 1000
        await more.wait()
        yield b"b" * 20_000_000  # more than SEMCACHE_MAX_BODY_BYTES, which is for what is read as a whole

    sending = asyncio.create_task(asker.http.post("/v1/files", content=upload()))
    async with asyncio.timeout(20):
        while not upstream.calls or upstream.calls[-1].target != "/v1/files":
            await upstream.arrived.wait()
            await asyncio.sleep(0)
    more.set()
    assert (await sending).json() == {"id": "file-1"}
    assert len(upstream.calls[-1].body) == 20_001_000

    async with asker.open({"input": "hello"}, path="/v1/audio/speech") as response:
        body = response.aiter_bytes()
        assert await anext(body) == b"first "
        gate.set()
        assert await anext(body) == b"last"


async def test_a_body_too_long_to_be_read_passes_too(upstream: FakeUpstream, start: Start) -> None:
    says(upstream, "ledger", "Read.")
    async with Asker((await start(max_body_bytes=2000)).base) as asker:
        for _ in range(2):
            got = await asker.ask(chat("The ledger. " * 1000))
            assert (got.text, got.cache, got.reason) == ("Read.", "BYPASS", "body_too_large")
    assert asked(upstream, "ledger")[0].json == chat("The ledger. " * 1000)


async def test_the_data_api_is_never_passed_on(upstream: FakeUpstream, asker: Asker) -> None:
    for method, path in (("GET", "/v1/caches/none"), ("PUT", "/v1/caches"), ("POST", "/v1/caches/a/b/c/d")):
        got = await asker.http.request(method, path)
        assert got.headers["content-type"] == "application/problem+json"
        assert got.status_code in (404, 405)
    assert not [call for call in upstream.calls if "caches" in call.target]


async def test_nothing_outside_v1_is_reached(upstream: FakeUpstream, asker: Asker) -> None:
    for path in ("/v1/../metrics", "/v1/%2e%2e/metrics", "/v1/..%2fmetrics", "/tokenize"):
        request = httpx.Request("POST", f"{asker.base}/", content=b"{}")
        request.url = httpx.URL(asker.base, raw_path=path.encode())
        got = await asker.http.send(request)
        assert got.status_code in (404, 405)
    assert not [call for call in upstream.calls if call.target.endswith("metrics") and call.method == "POST"]


async def test_without_an_upstream_it_is_said_how_to_set_one(start: Start) -> None:
    async with Asker((await start(upstream=None)).base) as asker:
        for got in (await asker.ask(chat("Hello?")), await asker.ask({}, path="/v1/anything")):
            assert (got.status, got.json["error"]["code"]) == (404, "no_upstream")
            assert "SEMCACHE_UPSTREAM" in got.json["error"]["message"]
            assert got.json["error"]["type"] == "not_found_error"
        assert (await asker.http.get("/v1/caches/default")).status_code == 200


async def test_models_go_to_their_own_servers_with_their_own_keys(upstream: FakeUpstream, start: Start) -> None:
    async with FakeUpstream() as other:
        says(other, "Who are you", "The other.")
        says(upstream, "Who are you", "The first.")
        other.on("/v1/rerank", Reply(json={"by": "other"}))
        other.on("/v1/models/big", Reply(json={"id": "big"}))
        targets = {"big": UpstreamTarget(url=other.url, key="sk-big")}
        async with Asker((await start(upstreams=targets, upstream_key="sk-first")).base) as asker:
            assert (await asker.ask(chat("Who are you?", model="big"))).text == "The other."
            assert (await asker.ask(chat("Who are you?"))).text == "The first."
            assert (await asker.ask({"model": "big"}, path="/v1/rerank")).json == {"by": "other"}
            assert (await asker.http.get("/v1/models/big")).json() == {"id": "big"}
        assert asked(other, "Who are you")[0].header("authorization") == "Bearer sk-big"
        assert asked(upstream, "Who are you")[0].header("authorization") == "Bearer sk-first"


async def test_the_models_of_all_servers_are_listed_once_each(upstream: FakeUpstream, start: Start) -> None:
    def cards(*names: str) -> Reply:
        return Reply(json={"object": "list", "data": [{"id": name, "by": names[0]} for name in names]})

    async with FakeUpstream() as other:
        upstream.on("/v1/models", cards("small", "big"))
        other.on("/v1/models", cards("big", "small", "bigger"))
        targets = {"big": UpstreamTarget(url=other.url), "bigger": UpstreamTarget(url=other.url)}
        async with Asker((await start(upstreams=targets)).base) as asker:
            shown = (await asker.http.get("/v1/models")).json()
            assert [(card["id"], card["by"]) for card in shown["data"]] == [
                ("small", "small"),
                ("big", "big"),
                ("bigger", "big"),
            ]
            other.on("/v1/models", Reply(status=500, json={}))
            shown = (await asker.http.get("/v1/models")).json()
            assert [card["id"] for card in shown["data"]] == ["small"]
            upstream.on("/v1/models", Reply(drop=True))
            assert (await asker.http.get("/v1/models")).status_code == 502


async def test_errors_of_the_model_server_pass_as_they_are(upstream: FakeUpstream, asker: Asker) -> None:
    for status in (400, 401, 404, 429, 500, 503):
        error = {"error": {"message": f"no {status}", "type": "x", "code": status}}
        upstream.on(f"fibre {status}", Reply(status=status, json=error, headers={"retry-after": "7"}))
        got = await asker.ask(chat(f"Is this a fibre {status}?"))
        assert (got.status, got.json, got.headers["retry-after"], got.cache) == (status, error, "7", "MISS")
        upstream.on(f"fibre {status}", Reply(json=chat_body("It is.")))
        assert (await asker.ask(chat(f"Is this a fibre {status}?"))).text == "It is."
