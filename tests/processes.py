"""Our commands as processes of their own, as users start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg

BIN = Path(sys.executable).parent
CHECKOUT = Path(__file__).parents[1]
WAITING = "from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


def start(command: str, *arguments: str, folder: Path = CHECKOUT, **variables: str) -> subprocess.Popen[str]:
    """`pgsemcache` or `alembic`, in `folder`, with these variables and no SEMCACHE_ one beside them."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SEMCACHE_")}
    return subprocess.Popen(
        [str(BIN / command), *arguments],
        cwd=folder,
        env=inherited | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(command: str, *arguments: str, folder: Path = CHECKOUT, **variables: str) -> tuple[int, str, str]:
    """Status, standard output and standard error of a command that ends by itself."""
    with start(command, *arguments, folder=folder, **variables) as process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def waits(sql: psycopg.Connection[Any]) -> bool:
    """Whether something in this database waits for a lock."""
    return sql.execute(f"select {WAITING}").rowcount > 0


def kill_waiting(process: subprocess.Popen[str], sql: psycopg.Connection[Any]) -> None:
    """Kill -9, and end what waits for a lock: Postgres, which sees nothing of the kill, would go on with it."""
    process.kill()
    process.communicate()
    sql.execute(f"select pg_terminate_backend(pid, 10000) {WAITING}")
