"""`pgsemcache psql`: a look inside."""

from __future__ import annotations

import shutil
import subprocess

import typer

from service.commands.target import DatabaseUrl, DataDir, open_target, read_settings
from service.errors import Code, SemcacheError


def psql(context: typer.Context, data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Open psql on the database. Arguments after -- go to psql: pgsemcache psql -- -c 'table semcache.overview'"""
    with open_target(read_settings(data_dir=data_dir, database_url=database_url)) as target:
        command = [*target.psql, *context.args]
        if shutil.which(command[0]) is None:
            raise SemcacheError(Code.INTERNAL, "there is no psql on the PATH; install postgresql-client")
        status = subprocess.run(command, check=False).returncode  # noqa: S603 - our own psql, arguments as a list
    raise typer.Exit(status)


__all__ = ["psql"]
