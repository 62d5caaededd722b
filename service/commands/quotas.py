"""`pgsemcache quotas`: how much all caches of a tenant may hold together."""

from __future__ import annotations

from typing import Annotated

import typer

from service.commands.target import DatabaseUrl, DataDir, read_settings
from service.commands.work import run
from service.errors import Code, SemcacheError
from service.store import tenants
from service.store.database import Database

app = typer.Typer(help="Set and list the quotas of tenants.", no_args_is_help=True)


@app.command("set")
def set_quota(
    tenant: Annotated[str, typer.Option(help="The tenant.")],
    max_entries: Annotated[int | None, typer.Option(min=1, help="Most entries; not given: no limit.")] = None,
    max_bytes: Annotated[int | None, typer.Option(min=1, help="Most bytes; not given: no limit.")] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Set a tenant's quota as a whole. The worker evicts what is over it."""

    async def work(db: Database) -> bool:
        return await tenants.set_quota(db, tenant, max_entries=max_entries, max_bytes=max_bytes)

    settings = read_settings(data_dir=data_dir, database_url=database_url)
    if not run(settings, work, lambda _: None, role="semcache_worker"):
        raise SemcacheError(Code.INVALID_DATA, "there is no tenant of this name; see `pgsemcache quotas list`")


@app.command("list")
def list_quotas(data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Show all tenants: entries and bytes that their caches hold, each of how many."""
    settings = read_settings(data_dir=data_dir, database_url=database_url)
    for row in run(settings, tenants.list_quotas, lambda _: None, role="semcache_worker"):
        typer.echo(
            f"{row.tenant}\t{row.entries} of {row.max_entries or 'any'} entries"
            f"\t{row.bytes} of {row.max_bytes or 'any'} bytes"
        )


__all__ = ["app"]
