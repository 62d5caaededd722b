"""`pgsemcache worker`."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Annotated

import typer

from service.commands.target import DatabaseUrl, DataDir, end_on_hangup, open_target, read_settings
from service.settings import Settings
from service.store import migrate
from service.telemetry.logs import configure_logging
from workers.runtime import run, tasks


def worker(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    until_eof: Annotated[bool, typer.Option("--until-eof", help="End when standard input does.", hidden=True)] = False,
) -> None:
    """Run the periodic tasks. Any number may run: each task is done by one at a time."""
    settings = read_settings(data_dir=data_dir, database_url=database_url)
    configure_logging(settings)
    end_on_hangup()
    with open_target(settings) as target:
        if target.embedded:
            migrate.upgrade(target.url)
        migrate.require_current(target.url)
        if not until_eof:
            _say_hello(settings)
        asyncio.run(_until_told(target.url, settings, until_eof=until_eof))


def _say_hello(settings: Settings) -> None:
    names = ", ".join(task.name for task in tasks(settings))
    typer.echo(f"pgsemcache worker does {names}; `table semcache.tasks` shows how they fare; Ctrl-C ends it")
    sys.stdout.flush()


async def _until_told(url: str, settings: Settings, *, until_eof: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if until_eof:
        loop.add_reader(sys.stdin.fileno(), stop.set)
    await run(url, settings, stop)


__all__ = ["worker"]
