"""A model server that tests script, and a service before it: one for each module, or one with settings of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from asking import STEADY, Asker
from conftest import NewDatabase
from running import Service, running_service

from service.settings import Settings
from tests.fakes.upstream import FakeUpstream

Start = Callable[..., Awaitable[Service]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(upstream: FakeUpstream, new_database: NewDatabase) -> AsyncIterator[Service]:
    """A service that all tests of a module share."""
    with new_database() as url:
        context = running_service(Settings(database_url=url, upstream=upstream.url))
        yield await asyncio.to_thread(context.__enter__)
        await asyncio.to_thread(context.__exit__, None, None, None)


@pytest_asyncio.fixture(loop_scope="module")
async def asker(shared: Service) -> AsyncIterator[Asker]:
    """A client with a cache of its own."""
    async with Asker(shared.base) as made:
        await made.new_cache()
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def start(upstream: FakeUpstream, database_url: str, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts services on one database of the test's own; several are replicas."""
    async with AsyncExitStack() as stack:

        async def begin(**changes: Any) -> Service:
            settings = {"database_url": database_url, "data_dir": tmp_path, "upstream": upstream.url}
            settings |= {"lease_duration": STEADY} | changes
            context = running_service(Settings(**settings))
            service = await asyncio.to_thread(context.__enter__)
            stack.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
            return service

        yield begin


@pytest.fixture(autouse=True)
def _forget(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "upstream" in request.fixturenames:
        request.getfixturevalue("upstream").forget()
