"""`pgsemcache db`: the schema's life."""

from __future__ import annotations

from typing import Annotated

import typer

from service.commands.target import DatabaseUrl, DataDir, open_target, read_settings
from service.store import migrate

app = typer.Typer(help="Bring the schema to a release and back.", no_args_is_help=True)


@app.command()
def upgrade(
    revision: Annotated[str, typer.Argument(help="The revision to go to.")] = "head",
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Bring the database to this release: revisions, functions and views."""
    with open_target(read_settings(data_dir=data_dir, database_url=database_url), create=True) as target:
        migrate.upgrade(target.url, revision)
        _print(migrate.state(target.url))


@app.command()
def downgrade(
    revision: Annotated[str, typer.Argument(help="The revision to go back to; base is before the first.")],
    drop_entries: Annotated[bool, typer.Option("--drop-entries", help="Lose what is stored, at base.")] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Take the database back to an earlier revision. It keeps all entries; base refuses while there are any."""
    with open_target(read_settings(data_dir=data_dir, database_url=database_url)) as target:
        migrate.downgrade(target.url, revision, drop_entries=drop_entries)
        _print(migrate.state(target.url))


@app.command()
def current(data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Show where the database stands. Status 1 when it is behind this release."""
    with open_target(read_settings(data_dir=data_dir, database_url=database_url)) as target:
        state = migrate.state(target.url)
    _print(state)
    if state.behind:
        raise typer.Exit(1)


@app.command()
def check(data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Compare the database with this release, down to its SQL files and models. Status 1 when they differ."""
    with open_target(read_settings(data_dir=data_dir, database_url=database_url)) as target:
        for name in migrate.state(target.url).outdated:
            typer.echo(f"not as in this release: {name}")
        difference = migrate.check(target.url)
    if difference:
        typer.echo(difference)
        raise typer.Exit(1)
    typer.echo("no difference")


@app.command()
def sql(
    revision: Annotated[
        str, typer.Argument(help="The revision to go to, from an empty database; FROM:TO from a later one.")
    ] = "head",
) -> None:
    """Print the SQL that makes the schema, for a database that others administer."""
    typer.echo(migrate.offline_sql(revision))


def _print(state: migrate.State) -> None:
    typer.echo(f"revision {state.revision or 'none'}, this release {state.head}")
    if state.outdated:
        typer.echo(f"SQL files of another release: {len(state.outdated)}; `pgsemcache db check` lists them")


__all__ = ["app"]
