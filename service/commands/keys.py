"""`pgsemcache keys`: who may enter, and as which tenant."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Annotated

import typer

from service.commands.target import DatabaseUrl, DataDir, read_settings
from service.commands.work import run
from service.errors import Code, SemcacheError
from service.store import tenants
from service.store.database import Database
from service.store.rows import InvalidationId

TENANT_NAME = re.compile("[A-Za-z0-9_.-]{1,64}")
OWN_KEY = re.compile("[!-~]{20,256}")

app = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)


@app.command()
def create(
    tenant: Annotated[str, typer.Option(help="The tenant that the key opens; made if it is new.")],
    key_file: Annotated[
        Path | None,
        typer.Option(help="Take the key from this file instead of making one; a second time changes nothing."),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a key and print it, once; one from a file is not printed. From the first key on all need one."""
    if not TENANT_NAME.fullmatch(tenant):
        raise SemcacheError(Code.INVALID_DATA, "--tenant: must be 1 to 64 of A-Z a-z 0-9 _ . -")
    key = _read_key(key_file) if key_file else f"sk-{secrets.token_urlsafe(32)}"

    async def work(db: Database) -> InvalidationId | None:
        owner = await tenants.ensure(db, tenant)
        if await tenants.find_by_key(db, key) == owner:
            return None
        _, invalidation = await tenants.create_key(db, owner, key)
        return invalidation

    run(read_settings(data_dir=data_dir, database_url=database_url), work, lambda invalidation: invalidation)
    if not key_file:
        typer.echo(key)


def _read_key(path: Path) -> str:
    try:
        key = path.read_text().strip()
    except OSError as error:
        raise SemcacheError(Code.INVALID_DATA, f"--key-file: {error.strerror}: {path}") from error
    if not OWN_KEY.fullmatch(key):
        raise SemcacheError(Code.INVALID_DATA, "--key-file: must hold 20 to 256 printable characters without spaces")
    return key


@app.command("list")
def list_keys(data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Show all keys: number, tenant, first characters, state."""
    found = run(read_settings(data_dir=data_dir, database_url=database_url), tenants.list_keys, lambda _: None)
    for key in found:
        state = f"revoked {key.revoked_at:%Y-%m-%d %H:%M}" if key.revoked_at else "good"
        typer.echo(f"{key.api_key_id}\t{key.tenant}\t{key.hint}…\t{key.created_at:%Y-%m-%d %H:%M}\t{state}")


@app.command()
def revoke(
    number: Annotated[int, typer.Argument(help="The key's number, as `keys list` shows it.")],
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Revoke a key: when this returns no replica lets it in any more."""

    async def work(db: Database) -> InvalidationId | None:
        return await tenants.revoke_key(db, number)

    settings = read_settings(data_dir=data_dir, database_url=database_url)
    if run(settings, work, lambda invalidation: invalidation) is None:
        raise SemcacheError(Code.INTERNAL, f"there is no good key of number {number}; see `pgsemcache keys list`")


__all__ = ["app"]
