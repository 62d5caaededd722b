"""Real `pgsemcache serve` processes, on an embedded Postgres of each test's own or on the tests' server."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
from calls import Cache
from postgres_process import family
from processes import run, start

LISTENS = "pgsemcache listens on "


@dataclass
class Serving:
    """A service process that answers. `family` are the processes below it: its worker, but not Postgres."""

    process: subprocess.Popen[str]
    http: httpx.Client

    @property
    def cache(self) -> Cache:
        return Cache(self.http, "default")

    @property
    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Ask it to end, and give its status."""
        self.process.terminate()
        return self.process.wait(20)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


Serve = Callable[..., Serving]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts `pgsemcache serve` with these arguments and SEMCACHE_ variables; what is left at the end is killed."""
    running: list[Serving] = []
    folders: set[Path] = set()

    def begin(*arguments: str, **variables: str) -> Serving:
        if "--data-dir" in arguments:
            folders.add(Path(arguments[arguments.index("--data-dir") + 1]))
        process = start("pgsemcache", "serve", "--port", "0", *arguments, **variables)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(LISTENS), line + process.communicate()[1]
        base = line.removeprefix(LISTENS).split()[0].replace("0.0.0.0", "127.0.0.1")
        running.append(Serving(process, httpx.Client(base_url=base, timeout=30)))
        while running[-1].http.get("/readyz").status_code != 200:
            assert process.poll() is None
        return running[-1]

    yield begin
    for serving in running:
        serving.http.close()
        with suppress(psutil.NoSuchProcess):
            serving.signal(signal.SIGCONT)
        serving.kill()
        serving.process.communicate()
    for folder in folders:
        end_postgres(folder)


def end_postgres(data_dir: Path) -> None:
    with suppress(FileNotFoundError, psutil.NoSuchProcess):
        left = family(data_dir)
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, 10)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the schema in it; nothing runs there."""
    folder = tmp_path_factory.mktemp("made") / "data"
    status, _, err = run("pgsemcache", "db", "upgrade", "--data-dir", str(folder))
    assert status == 0, err
    return folder


@pytest.fixture
def data_dir(made: Path, tmp_path: Path) -> Path:
    """A data directory of the test's own."""
    folder = tmp_path / "data"
    subprocess.run(["cp", "-a", made, folder], check=True)
    return folder
