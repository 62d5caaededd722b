"""How busy a model server is, as vLLM's /metrics say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.upstream.client import UpstreamClient

_SAMPLE = re.compile(
    r"^vllm:(num_requests_waiting|kv_cache_usage_perc|gpu_cache_usage_perc)(?:\{.*\})? (\S+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Load:
    """waiting: requests in all engines' queues; kv_usage: of the fullest key-value cache, 0 to 1. None: not shown."""

    waiting: float | None = None
    kv_usage: float | None = None

    def has_room(self, *, waiting: float, kv_usage: float) -> bool:
        """Whether neither is above its bound. What is not shown does not count."""
        return (self.waiting or 0) <= waiting and (self.kv_usage or 0) <= kv_usage


async def read_load(client: UpstreamClient, model: str) -> Load:
    """The load of the server of `model`; a server without such metrics shows none.

    Raises: UpstreamError where it does not answer.
    """
    response = await client.ask("GET", "/metrics", model=model)
    text = (await response.read()).decode("utf-8", "replace")
    if response.status != 200:
        return Load()
    waiting: list[float] = []
    usage: list[float] = []
    for name, value in _SAMPLE.findall(text):
        (waiting if name == "num_requests_waiting" else usage).append(float(value))
    return Load(sum(waiting) if waiting else None, max(usage, default=None))


__all__ = ["Load", "read_load"]
