"""`pgsemcache psql`: a look inside."""

from __future__ import annotations

import os
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
        secret = {} if target.password is None else {"PGPASSWORD": target.password}  # arguments are for all to see
        status = subprocess.run(command, check=False, env=os.environ | secret).returncode  # noqa: S603 - our own psql
    raise typer.Exit(status)


__all__ = ["psql"]
