from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from service.settings import Settings
from service.upstream.client import UpstreamClient
from tests.fakes.upstream import FakeUpstream

Connect = Callable[..., UpstreamClient]


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as running:
        yield running


@pytest.fixture
async def connect(upstream: FakeUpstream) -> AsyncIterator[Connect]:
    """Makes clients of the fake model server, with other settings where asked."""
    made: list[UpstreamClient] = []

    def make(**settings: Any) -> UpstreamClient:
        made.append(UpstreamClient(Settings(**({"upstream": upstream.url} | settings))))
        return made[-1]

    yield make
    for client in made:
        await client.aclose()
