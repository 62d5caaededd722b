"""The embedded Postgres: one server for each data directory, shared by every process that works on it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import psycopg

from service.errors import Code, SemcacheError
from service.store.postmaster import POLL_SECONDS, PORT, START_SECONDS, Postmaster

DATABASE = "semcache"


class EmbeddedPostgres:
    """Postgres 18 with pgvector on a Unix socket, its data in `data_dir/postgres`.

    Whoever calls `start` first starts it, everybody else joins, and the last one to `release` stops it. A
    killed process counts as gone, since the kernel drops its locks. All calls block. Failures are a
    `SemcacheError` with the end of the server's log. `durable=False` is for tests: a crash of the machine
    may then lose data.
    """

    # `postgres.lock` is held alone, briefly, around every change of the server's state. `postgres.users` is
    # held shared for as long as a process uses the server, and taken and left only under `postgres.lock`:
    # so whoever can hold `postgres.users` alone, while holding `postgres.lock`, is the last user.

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        self._data_dir = data_dir.expanduser().resolve()
        self._server = Postmaster(self._data_dir, durable=durable)
        self._lease: int | None = None

    def start(self) -> str:
        """Start or join the server, keep it in use until `release`, and return its URL."""
        with self._alone():
            if self._lease is None:
                self._lease = self._open("postgres.users")
                fcntl.flock(self._lease, fcntl.LOCK_SH)
            try:
                self._server.prepare()
                self._server.ensure_ready()
                self._ensure_database()
            except BaseException:
                self._leave()
                raise
        return self.url

    def release(self) -> None:
        """Stop using the server. The last user stops it."""
        if self._lease is None:
            return
        with self._alone():
            if _try_lock(self._lease):
                self._server.stop()
            self._leave()

    def alive(self) -> bool:
        """Whether the server takes connections; it may still be recovering. Takes under a millisecond."""
        return self._server.alive()

    def ensure_running(self) -> None:
        """Start the server again if it died. Of several callers one starts it and the others wait."""
        if not self.alive():
            with self._alone():
                self._server.ensure_ready()

    @property
    def url(self) -> str:
        """Where the running server listens, for libpq and psycopg, as its superuser."""
        folder = self._server.socket_folder()
        if folder is None:
            raise self._server.failure("It is not running")
        return f"postgresql://postgres@/{DATABASE}?host={quote(str(folder))}&port={PORT}"

    def psql_command(self) -> list[str]:
        """The command that opens `psql` on the running server; `shlex.join` prints it."""
        return [str(self._server.binaries / "psql"), self.url]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @contextmanager
    def _alone(self) -> Generator[None]:
        lock = self._open("postgres.lock")
        try:
            deadline = time.monotonic() + 2 * START_SECONDS
            while not _try_lock(lock):
                if time.monotonic() > deadline:
                    raise self._server.failure("Another process has been starting or stopping it too long")
                time.sleep(POLL_SECONDS)
            yield
        finally:
            os.close(lock)

    def _open(self, name: str) -> int:
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            return os.open(self._data_dir / name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise SemcacheError(
                Code.DATABASE_UNAVAILABLE,
                f"The data directory {self._data_dir} cannot be used ({error.strerror}). It must belong to "
                "the present user; give another with --data-dir.",
            ) from error

    def _leave(self) -> None:
        if self._lease is not None:
            os.close(self._lease)
            self._lease = None

    def _ensure_database(self) -> None:
        try:
            with psycopg.connect(self.url, dbname="postgres", autocommit=True) as connection:
                if connection.execute("select from pg_database where datname = %s", [DATABASE]).rowcount == 0:
                    connection.execute(f"create database {DATABASE}")
        except psycopg.OperationalError as error:
            raise self._server.failure("It broke the first connection", str(error)) from error


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


__all__ = ["DATABASE", "EmbeddedPostgres"]
