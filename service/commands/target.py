"""Which database a command works on: an own Postgres by its URL, or the embedded one of a data directory."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from service.errors import Code, SemcacheError
from service.settings import Settings
from service.store.database import split_password

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of the embedded Postgres. [SEMCACHE_DATA_DIR]", show_default=False),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url", help="postgresql://… of an own Postgres. [SEMCACHE_DATABASE_URL]", show_default=False
    ),
]


@dataclass(frozen=True)
class Target:
    """A database that is up. `psql` opens it, given the password; `revive` starts an embedded one again if it died."""

    url: str
    embedded: bool
    psql: list[str]
    password: str | None = None
    revive: Callable[[], None] | None = None


def read_settings(**flags: Any) -> Settings:
    """The settings with the flags that were given; of --data-dir and --database-url the flag beats the variable."""
    given = {name: value for name, value in flags.items() if value is not None}
    if "data_dir" in given and "database_url" not in given:
        given["database_url"] = None
    return Settings(**given)


def end_on_hangup() -> None:
    """A terminal that is closed ends us as SIGTERM does, unless we were started with nohup."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def has_embedded(data_dir: Path) -> bool:
    return (data_dir.expanduser() / "postgres").exists()


@contextmanager
def open_target(settings: Settings, *, create: bool = False) -> Iterator[Target]:
    """The database of the settings; an embedded one is started, or joined, and let go at the end.

    create: make an embedded one where there is none. Raises: SemcacheError(DATABASE_UNAVAILABLE).
    """
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        conninfo, password = split_password(url)
        yield Target(url, embedded=False, psql=["psql", conninfo], password=password)
        return
    if not (create or has_embedded(settings.data_dir)):
        raise SemcacheError(
            Code.DATABASE_UNAVAILABLE,
            f"there is no database in {settings.data_dir}; name another with --data-dir or --database-url, or let "
            "`pgsemcache serve` or `pgsemcache db upgrade` make one there",
        )
    from service.store.embedded import EmbeddedPostgres  # noqa: PLC0415 - an extra; own databases do without

    server = EmbeddedPostgres(settings.data_dir)
    url = server.start()
    try:
        yield Target(url, embedded=True, psql=server.psql_command(), revive=server.ensure_running)
    finally:
        server.release()


__all__ = ["DataDir", "DatabaseUrl", "Target", "end_on_hangup", "has_embedded", "open_target", "read_settings"]
