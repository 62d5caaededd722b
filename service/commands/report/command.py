"""`pgsemcache report`."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from service.commands.ago import ago
from service.commands.report.figures import make_report
from service.commands.report.plots import draw
from service.commands.report.render import render
from service.commands.target import DatabaseUrl, DataDir, read_settings
from service.commands.work import run
from service.errors import Code, SemcacheError
from service.store import workload
from service.store.database import Database
from service.store.workload import Workload


def report(  # noqa: PLR0917 - typer makes flags of them, none is positional
    cache: Annotated[str | None, typer.Option(help="Only caches of this name.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only caches of this tenant.")] = None,
    since: Annotated[str, typer.Option(help="How far back: 7d, 12h, 30m.")] = "7d",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file too.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Draw PNGs into this folder (extra plots).")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """What is asked, how often it comes again, and what a cache can make of it. Shows texts of prompts."""
    begin = ago(since)
    if plots is not None and find_spec("matplotlib") is None:
        raise SemcacheError(Code.INTERNAL, '--plots needs matplotlib: pip install "pgsemcache[plots]"')

    async def work(db: Database) -> Workload:
        return await workload.read(db, since=begin, cache=cache, tenant=tenant)

    settings = read_settings(data_dir=data_dir, database_url=database_url)
    found = make_report(run(settings, work, lambda _: None, role="semcache_worker"))
    typer.echo(render(found))
    if json_file is not None:
        json_file.write_text(json.dumps(asdict(found), indent=1, ensure_ascii=False) + "\n")
    if plots is not None:
        for path in draw(found, plots):
            typer.echo(f"wrote {path}")


__all__ = ["report"]
