"""The embedded Postgres as the operating system sees it."""

from __future__ import annotations

from pathlib import Path

import psutil


def postmaster(data_dir: Path) -> psutil.Process:
    """The server on a data directory. Raises FileNotFoundError or NoSuchProcess where none runs."""
    folder = data_dir / "postgres"
    process = psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))
    if str(folder) not in process.cmdline():
        raise psutil.NoSuchProcess(process.pid, msg="a killed server's number, which another process has by now")
    return process


def family(data_dir: Path) -> list[psutil.Process]:
    """The server with its back ends."""
    server = postmaster(data_dir)
    return [server, *server.children(recursive=True)]


def lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
