"""Where the files beside the code are: in a wheel below `service/_data`, in a checkout beside `service`."""

from __future__ import annotations

from importlib.metadata import version as distribution_version
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    packed = _PACKAGE / "_data" / name
    return packed if packed.is_dir() else _PACKAGE.parent / name


def sql_dir() -> Path:
    """The folder of functions, queries and views."""
    return _folder("sql")


def migrations_dir() -> Path:
    """Alembic's script location."""
    return _folder("migrations")


def console_dir() -> Path:
    """The folder of the console's page."""
    return _PACKAGE / "console"


def version() -> str:
    """The release, as its distribution says."""
    return distribution_version("pgsemcache")


__all__ = ["console_dir", "migrations_dir", "sql_dir", "version"]
