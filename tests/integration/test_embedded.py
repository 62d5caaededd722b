"""The embedded Postgres, with real processes that come, go and are killed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from service.errors import SemcacheError
from service.store import os_user, postmaster
from service.store.embedded import EmbeddedPostgres

ROOT = Path(__file__).parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root lends the server to another user")

# A process that uses the server until its standard input ends.
USER = """
import sys
from pathlib import Path
from service.store.embedded import EmbeddedPostgres
with EmbeddedPostgres(Path(sys.argv[1]), durable=False) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""

LIFE = """
import os, sys
from pathlib import Path
import psutil, psycopg
from service.store.embedded import EmbeddedPostgres
with EmbeddedPostgres(Path(sys.argv[1]), durable=False) as server:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("create table kept as select 42 as answer")
    [state] = Path(sys.argv[1]).glob("**/postmaster.pid")
    postmaster = psutil.Process(int(state.read_text().split()[0]))
    postmaster.kill()
    while server.alive():
        pass
    server.ensure_running()
    with psycopg.connect(server.url) as connection:
        print(connection.execute("select answer from kept").fetchone()[0], postmaster.pid, os.geteuid())
print(server.alive())
"""


class User:
    """Another process that uses the server."""

    def __init__(self, data_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, data_dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def url(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        self.process.communicate()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data directory; a server that a failed test leaves there is stopped."""
    folder = tmp_path / "data"
    yield folder
    if list(folder.glob("**/postmaster.pid")):
        with EmbeddedPostgres(folder, durable=False):
            pass


@pytest.fixture
def server(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(data_dir, durable=False) as running:
        yield running


def ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)
        row = cursor.fetchone() if cursor.description else None
        return row and row[0]


def server_process(data_dir: Path) -> psutil.Process:
    (state,) = data_dir.glob("**/postmaster.pid")
    return psutil.Process(int(state.read_text().split()[0]))


def kill_server(server: EmbeddedPostgres, data_dir: Path) -> None:
    server_process(data_dir).kill()
    while server.alive():
        pass


def test_first_start_gives_a_crash_safe_server_on_a_socket_only(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        with psycopg.connect(server.url) as connection:
            settings = dict(connection.execute("select name, setting from pg_settings").fetchall())
            assert connection.execute("select 1 from pg_available_extensions where name = 'vector'").fetchone()
        assert settings["server_version"].startswith("18.")
        assert settings["server_encoding"] == "UTF8"
        assert settings["listen_addresses"] == ""
        assert {settings[name] for name in ("fsync", "full_page_writes", "synchronous_commit")} == {"on"}
        assert (data_dir / "postgres").stat().st_mode & 0o077 == 0
        done = subprocess.run(
            [*server.psql_command(), "-Atc", "select 6 * 7"], capture_output=True, text=True, check=True
        )
        assert done.stdout == "42\n"


def test_starters_at_once_share_one_server_and_the_last_stops_it(data_dir: Path) -> None:
    users = [User(data_dir) for _ in range(4)]
    urls = {user.url() for user in users}
    assert len(urls) == 1
    process = server_process(data_dir)
    for user in users[1:]:
        user.leave()
    assert ask(urls.pop(), "select 1") == 1
    users[0].leave()
    assert not list(data_dir.glob("**/postmaster.pid"))
    assert not running(process)
    assert EmbeddedPostgres(data_dir).alive() is False


def test_killed_user_holds_nothing_up(data_dir: Path) -> None:
    killed = User(data_dir)
    ask(killed.url(), "create table kept ()")
    process = server_process(data_dir)
    killed.kill()
    with EmbeddedPostgres(data_dir, durable=False) as server:
        assert server_process(data_dir) == process
        assert ask(server.url, "select count(*) from kept") == 0
    assert not server.alive()


def test_killed_server_comes_back_with_its_data(server: EmbeddedPostgres, data_dir: Path) -> None:
    ask(server.url, "create table kept as select 42 as answer; select 1")
    before = server_process(data_dir)
    kill_server(server, data_dir)
    assert not server.alive()
    others = [EmbeddedPostgres(data_dir, durable=False) for _ in range(3)]
    rescuers = [threading.Thread(target=other.start) for other in others]
    for rescuer in rescuers:
        rescuer.start()
    server.ensure_running()
    assert ask(server.url, "select answer from kept") == 42
    for rescuer in rescuers:
        rescuer.join()
    assert server_process(data_dir) != before
    for other in others:
        other.release()
    assert server.alive()


def test_restart_waits_for_back_ends_of_the_killed_server(server: EmbeddedPostgres, data_dir: Path) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        busy = psutil.Process(connection.info.backend_pid)
        work = threading.Thread(target=compute, args=[connection])
        work.start()
        while busy.cpu_times().user < 0.1:
            pass
        kill_server(server, data_dir)
        assert running(busy)
        server.ensure_running()
        assert not running(busy)
        work.join()
    assert ask(server.url, "select 1") == 1


def compute(connection: psycopg.Connection) -> None:
    """Pure computing does not notice that the postmaster has gone; what comes after it does."""
    with suppress(psycopg.OperationalError):
        connection.execute("select sum(i % 7) from generate_series(1, 5000000) i")
        connection.execute("select 1")


def running(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_stranger_with_the_process_id_of_a_stale_file_is_no_obstacle(server: EmbeddedPostgres, data_dir: Path) -> None:
    state = data_dir / "postgres" / "postmaster.pid"
    owner = state.stat().st_uid
    kill_server(server, data_dir)
    stranger = subprocess.Popen(["sleep", "60"], user=owner if os.geteuid() == 0 else None)
    try:
        lines = state.read_text().splitlines()
        state.write_text("\n".join([str(stranger.pid), *lines[1:], ""]))
        assert not server.alive()
        server.ensure_running()
        assert ask(server.url, "select 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_start_goes_on_after_a_killed_initdb(data_dir: Path) -> None:
    (data_dir / "postgres.new").mkdir(parents=True)
    (data_dir / "postgres.new" / "PG_VERSION").write_text("18")
    with EmbeddedPostgres(data_dir, durable=False) as server:
        assert ask(server.url, "select 1") == 1


def test_folder_of_something_else_is_left_alone(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    (data_dir / "postgres" / "letter").write_text("dear")
    with pytest.raises(SemcacheError, match="holds no database"):
        EmbeddedPostgres(data_dir, durable=False).start()
    assert (data_dir / "postgres" / "letter").read_text() == "dear"


def test_failed_start_shows_the_servers_last_words(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, durable=False):
        pass
    (data_dir / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(SemcacheError, match="database files are incompatible with server"):
        EmbeddedPostgres(data_dir, durable=False).start()


def test_long_path_gets_a_short_private_socket_folder(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path(tempfile.mkdtemp(prefix="sc-"))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    long = data_dir / ("x" * 100)
    try:
        with EmbeddedPostgres(long, durable=False) as server:
            assert ask(server.url, "select 1") == 1
            (folder,) = short.iterdir()
            assert folder.stat().st_mode & 0o077 == 0
            assert list(data_dir.glob("**/postmaster.pid"))
        folder.chmod(0o777)
        with pytest.raises(SemcacheError, match="must be a folder that only user id"):
            EmbeddedPostgres(long, durable=False).start()
    finally:
        shutil.rmtree(short)


def test_unusable_data_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SemcacheError, match="file/data cannot be used"):
        EmbeddedPostgres(tmp_path / "file" / "data").start()


def test_missing_wheel_names_the_extra(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postmaster, "find_spec", lambda _: None)
    with pytest.raises(SemcacheError, match=r"pgsemcache\[embedded\]"):
        EmbeddedPostgres(data_dir)


@as_root
def test_root_lets_the_servers_user_pass_and_nobody_else(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with EmbeddedPostgres(closed / "data dir", durable=False) as server:
        assert ask(server.url, "select 1") == 1
        assert server_process(closed).username() == os_user.SYSTEM_USER
        assert closed.stat().st_mode & 0o007 == 0
    closed.chmod(0o700)  # takes the right away again
    with EmbeddedPostgres(closed / "data dir", durable=False) as server:
        assert ask(server.url, "select 1") == 1
    nobody = pwd.getpwnam("nobody").pw_uid
    passed = subprocess.run(["ls", closed / "data dir"], user=nobody, group=nobody, extra_groups=[], check=False)
    assert passed.returncode != 0


@as_root
def test_root_keeps_the_rights_that_a_folder_gives_already(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o750)
    first, second = os_user.OsUser(60001, 60001), os_user.OsUser(60002, 60002)
    os_user.let_pass(closed / "data", first)
    os_user.let_pass(closed / "data", second)
    state = os.getxattr(closed, "system.posix_acl_access")
    os_user.let_pass(closed / "data", first)
    assert os.getxattr(closed, "system.posix_acl_access") == state
    for user in (first, second):
        assert subprocess.run(["test", "-x", "."], cwd=closed, user=user.uid, check=False).returncode == 0
        assert subprocess.run(["test", "-r", "."], cwd=closed, user=user.uid, check=False).returncode != 0


@as_root
def test_ordinary_user_needs_no_root() -> None:
    home = Path(tempfile.mkdtemp(prefix="home of nobody "))
    nobody = pwd.getpwnam("nobody")
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    packages = os.pathsep.join([str(ROOT), *(place for place in sys.path if place.endswith("site-packages"))])
    lent = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}
    environment = {"PATH": os.defpath, "HOME": str(home), "PYTHONPATH": packages}
    try:
        python = reachable_python(environment, lent)
        done = subprocess.run(
            [python, "-c", LIFE, home / "data"], env=environment, capture_output=True, text=True, check=False, **lent
        )
    finally:
        shutil.rmtree(home)
    assert done.returncode == 0, done.stderr
    life, stopped = done.stdout.splitlines()
    assert life.split()[0] == "42"
    assert life.split()[2] == str(nobody.pw_uid)
    assert stopped == "False"


def reachable_python(environment: dict[str, str], lent: dict[str, object]) -> str:
    """A Python of this version that an ordinary user can run, with our packages."""
    for python in (sys.executable, "/usr/bin/python3"):
        code = f"import psycopg, service, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
        try:
            done = subprocess.run([python, "-c", code], env=environment, capture_output=True, check=False, **lent)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    pytest.skip("no Python of this version and checkout can be reached by an ordinary user")


def test_a_frozen_server_is_not_waited_for_and_ends_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postmaster, "STOP_SECONDS", 1)
    server = EmbeddedPostgres(tmp_path, durable=False)
    server.start()
    [state] = tmp_path.glob("**/postmaster.pid")
    frozen = psutil.Process(int(state.read_text().split()[0]))
    frozen.suspend()
    try:
        begun = time.monotonic()
        server.release()
        assert time.monotonic() - begun < 10
        assert frozen.is_running()
    finally:
        frozen.resume()
    frozen.wait(30)
