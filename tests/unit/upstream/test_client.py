import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from service.errors import Code
from service.settings import Settings
from service.upstream.client import UpstreamClient, UpstreamError
from tests.fakes.upstream import FakeUpstream, Reply, chat_body, chat_stream

Connect = Callable[..., UpstreamClient]
CHAT = "/v1/chat/completions"


async def test_a_body_goes_and_comes_byte_for_byte(upstream: FakeUpstream, connect: Connect) -> None:
    upstream.on(CHAT, Reply(json=chat_body("Noon."), headers={"x-ratelimit-remaining": "9"}))
    raw = b'{ "seed": 1e0, "text": "\\ud83d" }'
    response = await connect().send("POST", CHAT, headers=[(b"x-session-id", b"s-1")], content=raw)
    assert response.status == 200
    assert (b"x-ratelimit-remaining", b"9") in response.headers
    assert await response.read() == json.dumps(chat_body("Noon.")).encode()
    (call,) = upstream.calls
    assert call.body == raw
    assert call.header("x-session-id") == "s-1"
    assert call.header("content-length") == str(len(raw))


async def test_headers_keep_their_bytes_and_large_bodies_pass(upstream: FakeUpstream, connect: Connect) -> None:
    upstream.on(CHAT, Reply(json={}, headers={"x-shown": "caf\u00e9"}))
    raw = b"x" * 3_000_000
    response = await connect().send("POST", CHAT, headers=[(b"x-said", "caf\u00e9".encode())], content=raw)
    await response.read()
    (call,) = upstream.calls
    assert (call.body, call.header("x-said")) == (raw, "caf\u00e9".encode().decode("latin-1"))
    assert (b"x-shown", "caf\u00e9".encode("latin-1")) in response.headers
    assert call.header("content-type") is None


async def test_the_environments_proxy_is_used_but_for_hosts_that_are_named(
    upstream: FakeUpstream, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", upstream.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for host in ("model.invalid", f"127.0.0.1:{upstream.port}"):
        await (await connect(upstream=f"http://{host}/v1").send("GET", "/v1/models")).read()
    assert [call.target for call in upstream.calls] == ["http://model.invalid/v1/models", "/v1/models"]


async def test_paths_queries_and_methods_pass_as_they_are(upstream: FakeUpstream, connect: Connect) -> None:
    response = await connect().send("PATCH", "/v1/files/a%2Fb/x.y", query="depth=3&q=%20a%2B")
    assert (response.status, await response.read()) == (404, b'{"detail": "Not Found"}')
    (call,) = upstream.calls
    assert (call.method, call.target) == ("PATCH", "/v1/files/a%2Fb/x.y?depth=3&q=%20a%2B")


@pytest.mark.parametrize(
    "path",
    ["/v1/../metrics", "/v1/%2e%2e/metrics", "/v1/%252e%252e/metrics", "/v1/a/..%5cb", "/metrics", "/v1", "/v12/a"],
)
async def test_nothing_outside_v1_is_reached(upstream: FakeUpstream, connect: Connect, path: str) -> None:
    with pytest.raises(UpstreamError) as caught:
        await connect().send("GET", path)
    assert caught.value.code is Code.ROUTE_NOT_FOUND
    assert not upstream.calls


async def test_a_stream_is_relayed_as_it_comes(upstream: FakeUpstream, connect: Connect) -> None:
    gates = {1: asyncio.Event(), 3: asyncio.Event()}
    events = chat_stream("At ", "noon.")
    upstream.on(CHAT, Reply(chunks=events, gates=gates))
    response = await connect().send("POST", CHAT, content=b"{}")
    assert response.streams
    source = response.chunks()
    assert await anext(source) == events[0]
    gates[1].set()
    got = b""
    while not got.endswith(events[2]):
        got += await anext(source)
    gates[3].set()
    assert got + b"".join([chunk async for chunk in source]) == b"".join(events[1:])


async def test_a_request_body_is_streamed(upstream: FakeUpstream, connect: Connect) -> None:
    upstream.on("/v1/files", Reply(json={}))

    async def upload() -> AsyncIterator[bytes]:
        yield b"first "
        await upstream.arrived.wait()  # the head of the request is there before the body ends
        yield b"second"

    response = await connect().send("POST", "/v1/files", content=upload())
    await response.read()
    (call,) = upstream.calls
    assert call.body == b"first second"
    assert call.header("transfer-encoding") == "chunked"


async def test_a_streamed_body_keeps_its_announced_length(upstream: FakeUpstream, connect: Connect) -> None:
    upstream.on("/v1/files", Reply(json={}))

    async def upload() -> AsyncIterator[bytes]:
        yield b"four"

    headers = [(b"content-length", b"4"), (b"content-type", b"text/plain")]
    await (await connect().send("POST", "/v1/files", headers=headers, content=upload())).read()
    (call,) = upstream.calls
    assert call.header("content-length") == "4"
    assert call.header("transfer-encoding") is None


async def test_closing_early_is_seen_by_the_server(upstream: FakeUpstream, connect: Connect) -> None:
    upstream.on(CHAT, Reply(chunks=chat_stream("a", "b"), gates={1: asyncio.Event()}))
    response = await connect().send("POST", CHAT, content=b"{}")
    await anext(response.chunks())
    response.close()
    async with asyncio.timeout(2):
        await upstream.calls[0].aborted.wait()


async def test_compressed_answers_come_out_plain(upstream: FakeUpstream, connect: Connect) -> None:
    packed = gzip.compress(b'{"a": 1}')
    headers = {"content-encoding": "gzip", "content-length": str(len(packed))}
    upstream.on(CHAT, Reply(chunks=[packed], headers=headers))
    response = await connect().send("POST", CHAT, headers=[(b"accept-encoding", b"gzip, br")], content=b"{}")
    assert await response.read() == b'{"a": 1}'
    assert not {b"content-encoding", b"content-length"} & {name for name, _ in response.headers}
    assert upstream.calls[0].header("accept-encoding") == "identity"


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({}, None),
        ({"upstream_key": "up-1"}, "Bearer up-1"),
        ({"upstream_forward_authorization": True}, "Bearer caller"),
        ({"upstream_forward_authorization": True, "upstream_key": "up-1"}, "Bearer up-1"),
    ],
)
async def test_the_callers_key_is_never_forwarded_by_accident(
    upstream: FakeUpstream, connect: Connect, settings: dict[str, Any], sent: str | None
) -> None:
    secrets = [(b"Authorization", b"Bearer caller"), (b"cookie", b"c=1"), (b"x-api-key", b"caller")]
    await (await connect(**settings).send("POST", CHAT, headers=secrets, content=b"{}")).read()
    (call,) = upstream.calls
    assert call.header("authorization") == sent
    assert call.header("cookie") is call.header("x-api-key") is None


async def test_models_have_servers_of_their_own(upstream: FakeUpstream, connect: Connect) -> None:
    async with FakeUpstream() as second:
        client = connect(upstream_key="up-1", upstreams={"wide": {"url": second.url, "key": "up-2"}})
        for model in ("wide", "small", None):
            await (await client.send("POST", CHAT, content=b"{}", model=model)).read()
        assert [call.header("authorization") for call in second.calls] == ["Bearer up-2"]
        assert [call.header("authorization") for call in upstream.calls] == ["Bearer up-1"] * 2


async def test_without_a_server_for_the_model_the_request_is_refused(connect: Connect) -> None:
    client = connect(upstream=None, upstreams={"wide": {"url": "http://127.0.0.1:9/v1"}})
    with pytest.raises(UpstreamError) as caught:
        await client.send("POST", CHAT, model="small")
    assert caught.value.code is Code.NO_UPSTREAM


def test_servers_by_model_are_read_from_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMCACHE_UPSTREAMS", '{"wide": {"url": "http://a:1/v1", "key": "up-2"}}')
    target = Settings().upstreams["wide"]
    assert target.key is not None
    assert (target.url, target.key.get_secret_value()) == ("http://a:1/v1", "up-2")
    assert "up-2" not in repr(target)


@pytest.mark.parametrize("suffix", ["/v1", "/v1/", "", "/"])
async def test_a_base_url_is_taken_with_and_without_its_v1(
    upstream: FakeUpstream, connect: Connect, suffix: str
) -> None:
    client = connect(upstream=upstream.url.removesuffix("/v1") + suffix)
    await (await client.send("GET", "/v1/models")).read()
    await (await client.ask("GET", "/version")).read()
    assert [call.target for call in upstream.calls] == ["/v1/models", "/version"]


async def test_a_server_that_is_not_there_is_a_502(connect: Connect) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(UpstreamError) as caught:
            await connect(upstream=url).send("POST", CHAT, content=b"{}")
    assert caught.value.code is Code.UPSTREAM_UNREACHABLE
    assert caught.value.code.value.status == 502


async def test_a_dropped_connection_is_a_502(upstream: FakeUpstream, connect: Connect) -> None:
    upstream.on(CHAT, Reply(drop=True))
    with pytest.raises(UpstreamError) as caught:
        await connect().send("POST", CHAT, content=b"{}")
    assert caught.value.code is Code.UPSTREAM_UNREACHABLE


async def test_a_cut_answer_is_a_broken_one(upstream: FakeUpstream, connect: Connect) -> None:
    upstream.on(CHAT, Reply(chunks=chat_stream("a", "b"), cut_after=2))
    response = await connect().send("POST", CHAT, content=b"{}")
    with pytest.raises(UpstreamError) as caught:
        await response.read()
    assert caught.value.code is Code.UPSTREAM_BROKEN


@pytest.mark.parametrize(
    ("setting", "reply"),
    [
        ("upstream_first_byte_timeout", Reply(hold=asyncio.Event())),
        ("upstream_read_timeout", Reply(chunks=chat_stream("a"), gates={1: asyncio.Event()})),
    ],
)
async def test_silence_is_a_504_that_names_its_setting(
    upstream: FakeUpstream, connect: Connect, setting: str, reply: Reply
) -> None:
    upstream.on(CHAT, reply)
    client = connect(**{setting: 0.05})
    with pytest.raises(UpstreamError, match=f"SEMCACHE_{setting.upper()}") as caught:
        await (await client.send("POST", CHAT, content=b"{}")).read()
    assert caught.value.code.value.status == 504
    async with asyncio.timeout(2):
        await upstream.calls[0].aborted.wait()
