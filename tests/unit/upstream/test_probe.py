from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from service.upstream.client import UpstreamClient, UpstreamError
from service.upstream.probe import ProbeResult, probe
from tests.fakes.upstream import FakeUpstream, Reply

Connect = Callable[..., UpstreamClient]
ROUTES = ("models", "version", "texts", "talks", "render", "metrics")
TICK: Iterator[int] = count(1_700_000_000)


def models() -> dict[str, Any]:
    """As vLLM does: `created` and the permission's id are others at every call."""
    tick = next(TICK)
    card = {"id": "small-chat", "object": "model", "created": tick, "owned_by": "vllm", "root": "models/small"}
    shown = card | {"parent": None, "max_model_len": 4096, "permission": [{"id": f"modelperm-{tick}"}]}
    return {"object": "list", "data": [{"id": "other", "root": "x"}, shown]}


def metrics(started: float = 1.7e9) -> bytes:
    config = 'vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="99"} 1.0'
    return f"# TYPE x gauge\n{config}\nprocess_start_time_seconds {started}\n".encode()


def completion(text: str = " 2, 3, 5", logprob: float = -0.123) -> dict[str, Any]:
    choice = {"index": 0, "text": text, "logprobs": {"token_logprobs": [logprob, None]}}
    return {"choices": [choice], "system_fingerprint": "vllm-0.32.0-aabb"}


def rendered(temperature: float = 1.0) -> dict[str, Any]:
    """As vLLM does: the id is another one at every call."""
    params = {"temperature": temperature, "top_p": 1.0, "max_tokens": 4069}
    return {"request_id": f"chatcmpl-{next(TICK)}", "token_ids": [7, 8], "sampling_params": params}


def serve(upstream: FakeUpstream, **changes: Reply) -> None:
    """A vLLM server, but for the routes in `changes`."""
    upstream.on("/v1/models", changes.get("models", Reply(json=models())))
    upstream.on("/version", changes.get("version", Reply(json={"version": "0.32.0"})))
    upstream.on("/tokenize", changes.get("texts", Reply(json={"tokens": [1, 2, 3]})))
    upstream.on('"messages"', changes.get("talks", Reply(json={"tokens": [7, 8]})))
    upstream.on("/v1/chat/completions/render", changes.get("render", Reply(json=rendered())))
    upstream.on("/metrics", changes.get("metrics", Reply(chunks=[metrics()])))
    upstream.on("/v1/completions", changes.get("greedy", Reply(json=completion())))


async def look(upstream: FakeUpstream, connect: Connect, canary: bool = False, **changes: Reply) -> ProbeResult:
    serve(upstream, **changes)
    return await probe(connect(), "small-chat", canary=canary)


async def test_what_a_server_shows_is_read(upstream: FakeUpstream, connect: Connect) -> None:
    shown = await look(upstream, connect, canary=True)
    assert shown.card == {"id": "small-chat", "root": "models/small", "parent": None, "max_model_len": 4096}
    assert shown.engine_version == "0.32.0"
    assert shown.kv_cache == {"cache_dtype": "auto", "block_size": "16"}
    assert shown.started == 1.7e9
    assert shown.fingerprint == "vllm-0.32.0-aabb"
    assert shown.tokenizer
    assert shown.template
    assert shown.tokenizer != shown.template


async def test_a_restart_of_the_same_model_is_the_same_model(upstream: FakeUpstream, connect: Connect) -> None:
    before = await look(upstream, connect)
    after = await look(upstream, connect, metrics=Reply(chunks=[metrics(1.8e9)]))
    assert before.started != after.started
    assert before.digest == after.digest


@pytest.mark.parametrize(
    "change",
    [
        {"version": Reply(json={"version": "0.33.1"})},
        {"texts": Reply(json={"tokens": [1, 2, 4]})},
        {"talks": Reply(json={"tokens": [7, 9]})},
        {"models": Reply(json={"data": [{"id": "small-chat", "root": "models/other"}]})},
        {"metrics": Reply(chunks=[metrics().replace(b'"auto"', b'"fp8"')])},
        {"render": Reply(json=rendered(temperature=0.6))},
        {"greedy": Reply(json=completion(" 1, 2, 3"))},
        {"greedy": Reply(json=completion(logprob=-0.9))},
    ],
)
async def test_another_model_has_another_digest(
    upstream: FakeUpstream, connect: Connect, change: dict[str, Reply]
) -> None:
    before = await look(upstream, connect, canary=True)
    assert (await look(upstream, connect, canary=True, **change)).digest != before.digest


async def test_noise_and_the_fingerprint_are_no_other_model(upstream: FakeUpstream, connect: Connect) -> None:
    before = await look(upstream, connect, canary=True)
    other = completion(logprob=-0.124) | {"system_fingerprint": "vllm-0.32.0-ccdd"}
    after = await look(upstream, connect, canary=True, greedy=Reply(json=other))
    assert before.fingerprint != after.fingerprint
    assert before.digest == after.digest


@pytest.mark.parametrize("status", [400, 403, 404, 405])
async def test_routes_that_a_server_lacks_are_left_out(upstream: FakeUpstream, connect: Connect, status: int) -> None:
    gone = Reply(status=status, json={"error": {}})
    assert await look(upstream, connect, **dict.fromkeys(ROUTES, gone)) == ProbeResult()


async def test_a_page_of_a_front_end_is_no_route(upstream: FakeUpstream, connect: Connect) -> None:
    page = Reply(chunks=[b"<html>"])
    assert await look(upstream, connect, **dict.fromkeys(ROUTES, page)) == ProbeResult()


@pytest.mark.parametrize("odd", [{"data": ["small-chat"], "version": {"major": 1}}, {"data": 5, "version": 1}, [7]])
async def test_a_route_of_another_kind_shows_nothing(upstream: FakeUpstream, connect: Connect, odd: Any) -> None:
    assert await look(upstream, connect, **dict.fromkeys(ROUTES, Reply(json=odd))) == ProbeResult()


async def test_a_server_that_wants_its_callers_keys_may_show_nothing(upstream: FakeUpstream, connect: Connect) -> None:
    serve(upstream, **dict.fromkeys(ROUTES, Reply(status=401, json={"error": "Unauthorized"})))
    assert await probe(connect(upstream_forward_authorization=True), "small-chat") == ProbeResult()
    with pytest.raises(UpstreamError):
        await probe(connect(upstream_forward_authorization=True, upstream_key="ours"), "small-chat")


@pytest.mark.parametrize("trouble", [Reply(status=503, json={}), Reply(status=401, json={}), Reply(drop=True)])
async def test_a_failing_server_is_not_taken_for_another_model(
    upstream: FakeUpstream, connect: Connect, trouble: Reply
) -> None:
    with pytest.raises(UpstreamError):
        await look(upstream, connect, version=trouble)


async def test_no_token_is_generated_unless_asked_for(upstream: FakeUpstream, connect: Connect) -> None:
    await look(upstream, connect)
    assert "/v1/completions" not in {call.target for call in upstream.calls}
