"""The command `pgsemcache`."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from inspect import signature
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from service.commands import calibrate, db, doctor, keys, psql, quotas, serve, transfer
from service.commands.report.command import report
from service.errors import SemcacheError
from service.resources import version

PLUGINS = "pgsemcache.commands"

app = typer.Typer(
    help="A semantic cache for model answers that lives in Postgres.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve.serve)
app.command("calibrate")(calibrate.calibrate)
app.command("report")(report)
app.command("psql", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(psql.psql)
app.command("doctor")(doctor.doctor)
app.command("import")(transfer.import_lines)
app.command("export")(transfer.export_lines)
app.add_typer(db.app, name="db")
app.add_typer(keys.app, name="keys")
app.add_typer(quotas.app, name="quotas")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version())
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Every flag has its variable SEMCACHE_…; flags win."""


def main() -> None:
    """Run the command line. A failure of ours is one line on standard error and status 1."""
    for plugin in entry_points(group=PLUGINS):
        app.command(plugin.name)(plugin.load())
    try:
        app()
    except SemcacheError as error:
        sys.exit(f"pgsemcache: {error.detail}")
    except ValidationError as error:
        sys.exit("\n".join(f"pgsemcache: {_setting(problem)}" for problem in error.errors()))


def _setting(problem: Any) -> str:
    name, *inside = (str(part) for part in problem["loc"])
    variable = f"SEMCACHE_{name.upper()}"
    flag = f"--{name.replace('_', '-')} ({variable})" if name in signature(serve.serve).parameters else variable
    return f"{'.'.join((flag, *inside))}: {problem['msg'].removeprefix('Value error, ')}"


__all__ = ["app", "main"]
