"""A service that runs as it does for users: uvicorn in a thread, over real HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import uvicorn

from service.api.app import create_app
from service.cache.runtime import Runtime
from service.settings import Settings

READY_SECONDS = 60


@dataclass(frozen=True)
class Service:
    """A running service: its address, a client for it, and its parts."""

    base: str
    http: httpx.Client
    runtime: Runtime


class _Server(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        """None: it runs in a thread."""


@contextmanager
def running_service(settings: Settings) -> Iterator[Service]:
    """A service on the settings' database, ready; several may run on one database as replicas."""
    assert settings.database_url is not None
    app = create_app(settings, settings.database_url.get_secret_value())
    server = _Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        base = f"http://127.0.0.1:{_port(server, thread)}"
        with httpx.Client(base_url=base, timeout=30) as http:
            _wait_until_ready(http)
            yield Service(base, http, app.state.runtime)
    finally:
        server.should_exit = True
        thread.join(30)


async def in_company(*services: Service) -> None:
    """Return when each holds a lease, and knows by it that it is not alone."""
    async with asyncio.timeout(20):
        while not all(map(_accompanied, services)):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


def _accompanied(service: Service) -> bool:
    return service.runtime.memory.live and not service.runtime.coherence.alone


def _port(server: uvicorn.Server, thread: threading.Thread) -> int:
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        thread.join(0.01)
    return int(server.servers[0].sockets[0].getsockname()[1])


def _wait_until_ready(http: httpx.Client) -> None:
    transport_retries = threading.Event()
    for _ in range(READY_SECONDS * 20):
        if http.get("/readyz").status_code == 200:
            return
        transport_retries.wait(0.05)
    raise AssertionError(f"not ready within {READY_SECONDS} s: {http.get('/readyz').text}")
