from __future__ import annotations

import pytest

from service.errors import Code
from service.settings import Settings
from service.upstream.client import UpstreamClient, UpstreamError
from service.upstream.load import Load, read_load
from tests.fakes.upstream import FakeUpstream, Reply

PAGE = b"""# HELP vllm:num_requests_waiting Number of requests waiting.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{engine="1",model_name="m"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5
"""


@pytest.mark.parametrize(
    ("reply", "load"),
    [
        (Reply(chunks=[PAGE]), Load(3, 0.5)),
        (Reply(chunks=[b'vllm:gpu_cache_usage_perc{engine="0"} 1e-1\n']), Load(None, 0.1)),
        (Reply(chunks=[b"python_info 1.0\n"]), Load()),
        (Reply(status=404, json={}), Load()),
    ],
)
async def test_the_load_is_that_of_all_engines(reply: Reply, load: Load) -> None:
    async with FakeUpstream() as upstream, UpstreamClient(Settings(upstream=upstream.url)) as client:
        upstream.on("/metrics", reply)
        assert await read_load(client, "m") == load


async def test_a_server_that_is_away_is_told() -> None:
    async with UpstreamClient(Settings(upstream="http://127.0.0.1:9/v1")) as client:
        with pytest.raises(UpstreamError) as failed:
            await read_load(client, "m")
    assert failed.value.code is Code.UPSTREAM_UNREACHABLE


def test_what_is_not_shown_does_not_keep_anything_back() -> None:
    assert Load().has_room(waiting=0, kv_usage=0)
    assert Load(0, 0.7).has_room(waiting=0, kv_usage=0.7)
    assert not Load(1, 0.1).has_room(waiting=0, kv_usage=0.7)
    assert not Load(0, 0.71).has_room(waiting=0, kv_usage=0.7)
