"""`pgsemcache serve`: the service, on an own Postgres or on the embedded one."""

from __future__ import annotations

import asyncio
import gc
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
import uvicorn

from service.api.app import create_app
from service.api.origins import is_loopback
from service.commands.target import DatabaseUrl, DataDir, Target, end_on_hangup, open_target, read_settings
from service.errors import Code, SemcacheError
from service.settings import Settings
from service.store import migrate, tenants
from service.store.database import Database, Limits
from service.telemetry.logs import configure_logging
from service.telemetry.tracing import configure_tracing

GRACE = 5  # seconds for answers on their way; the runtime's own grace comes after it
# Above the clients' own (5 s in OpenAI's), so that no request is sent into a connection that is just being closed.
KEEP_ALIVE = 75


def serve(  # noqa: PLR0917 - typer makes flags of them, none is positional
    host: Annotated[str | None, typer.Option(help="Address to listen on. [SEMCACHE_HOST, 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one. [SEMCACHE_PORT, 8080]")] = None,
    upstream: Annotated[
        str | None, typer.Option(help="Base URL of the model server, ends in /v1. [SEMCACHE_UPSTREAM]")
    ] = None,
    with_worker: Annotated[
        bool | None,
        typer.Option(
            "--with-worker/--without-worker",
            help="Run the worker in a child process. [SEMCACHE_WITH_WORKER, with the embedded database]",
        ),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Serve the cache over HTTP. Without --database-url it brings its own Postgres."""
    settings = read_settings(
        host=host,
        port=port,
        upstream=upstream,
        with_worker=with_worker,
        data_dir=data_dir,
        database_url=database_url,
    )
    configure_logging(settings)
    configure_tracing(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises these again when it is done; so we leave through the finally blocks
        signal.signal(number, lambda *_: sys.exit(0))
    end_on_hangup()
    with _listen(settings) as listener, open_target(settings, create=True) as target:
        if target.embedded:
            migrate.upgrade(target.url)
        else:
            migrate.require_current(target.url)
        _require_keys(settings, target)
        with _worker(settings, target):
            _say_hello(settings, target, listener)
            _run(settings, target, listener)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise SemcacheError(
            Code.INTERNAL,
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; choose another --host or --port",
        ) from error


def _run(settings: Settings, target: Target, listener: socket.socket) -> None:
    app = create_app(settings, target.url, on_down=target.revive)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=KEEP_ALIVE,
    )
    gc.collect()
    gc.freeze()  # what is loaded stays: a collection that goes through it stops all requests for 100 ms
    uvicorn.Server(config).run(sockets=[listener])


def _require_keys(settings: Settings, target: Target) -> None:
    """Off loopback nobody may enter without a key, so there must be one.

    Raises: SemcacheError(UNAUTHENTICATED), naming the command.
    """
    any_key = asyncio.run(_any_key(target.url))
    if any_key or is_loopback(settings.host):
        return
    raise SemcacheError(
        Code.UNAUTHENTICATED,
        f"{settings.host} is reachable from elsewhere and there is no API key; make one first: "
        "pgsemcache keys create --tenant NAME, with the same --data-dir or --database-url",
    )


async def _any_key(url: str) -> bool:
    db = Database(url, Limits(pool_min=1, pool_max=1))
    await db.verify()
    await db.open()
    try:
        return await tenants.any_key(db)
    finally:
        await db.close()


@contextmanager
def _worker(settings: Settings, target: Target) -> Iterator[None]:
    """A worker beside the service, that ends with it: it reads our end of a pipe, which closes however we die."""
    wanted = settings.with_worker if settings.with_worker is not None else target.embedded
    if not wanted:
        yield
        return
    where = ["--data-dir", str(settings.data_dir)] if target.embedded else []
    flags = {
        "SEMCACHE_DATABASE_URL": None if target.embedded else target.url,
        "SEMCACHE_UPSTREAM": settings.upstream,
    }
    environment = os.environ | {name: value for name, value in flags.items() if value is not None}
    child = subprocess.Popen(  # noqa: S603 - our own module, arguments as a list
        [sys.executable, "-m", "workers", "--until-eof", *where], stdin=subprocess.PIPE, env=environment
    )
    try:
        yield
    finally:
        child.communicate()


def _say_hello(settings: Settings, target: Target, listener: socket.socket) -> None:
    address = f"http://{settings.host}:{listener.getsockname()[1]}"
    lines = [f"pgsemcache listens on {address}  (API: {address}/docs)", f"console          {address}/console"]
    if settings.upstream or settings.upstreams:
        lines.append(f"OpenAI API       OPENAI_BASE_URL={address}/v1")
    if target.embedded:
        lines.append(f"data directory   {settings.data_dir}")
        lines.append(f"look inside      {shlex.join(target.psql)}")
    body = '{"prompt": "How do I reset my password?", "response": "Under Settings, Security."}'
    lines.append(f"try              curl {address}/v1/caches/default/entries -H 'content-type: application/json' \\")
    lines.append(f"                      -d '{body}'")
    typer.echo("\n".join(lines))
    sys.stdout.flush()


__all__ = ["serve"]
