"""An upgrade at noon: the first schema's release serves a full table while this release's `db upgrade` runs.

The old release comes out of git. Failed requests, the longest one and the upgrade's time are printed.

    python benchmarks/upgrade.py [--entries 100000] [--commit COMMIT] [--json FILE]
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from socket import create_server

import httpx
import numpy as np
import psycopg
from setting import fill, questions, spread, table, write_json

from service.store import migrate
from service.store.embedded import EmbeddedPostgres

ROOT = Path(__file__).parents[1]
SECOND = "migrations/versions/0002_task.py"
CLIENTS = 4
MAIN = "from service.cli import main; main()"
HEADERS = ["phase", "requests", "failed", "p50 ms", "p99 ms", "longest ms"]


def old_release(commit: str | None, into: Path) -> Path:
    """The release before the second revision, unless another commit is named."""
    git = ["git", "-C", str(ROOT)]
    if commit is None:
        log = [*git, "log", "--diff-filter=A", "--format=%H", "--", SECOND]
        commit = subprocess.run(log, check=True, capture_output=True, text=True).stdout.split()[-1] + "^"
    archive = subprocess.run([*git, "archive", commit], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(into, filter="data")
    return into


@contextmanager
def serving(release: Path, url: str) -> Iterator[str]:
    """Its service with a worker, ready."""
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", MAIN, "serve", "--with-worker", "--port", str(port), "--database-url", url]
    process = subprocess.Popen(command, cwd=release, env=os.environ | {"PYTHONPATH": str(release)})
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                if httpx.get(f"{base}/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        yield base
    finally:
        process.terminate()
        process.wait(30)


def wait_for_index(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        while not connection.execute(
            "select exists (select from semcache.scope where ann_index is not null)"
        ).fetchone()[0]:
            time.sleep(1)


class Load:
    """Clients that search twice and store once, in turn. Each request is noted with its phase."""

    def __init__(self, base: str) -> None:
        self.base, self.phase, self.over = base, "before", threading.Event()
        self.seen: list[tuple[str, int, float]] = []

    def run(self, number: int) -> None:
        asked = questions(3_000)[number::CLIENTS]
        with httpx.Client(base_url=f"{self.base}/v1/caches/default", timeout=60) as http:
            for turn, prompt in enumerate(asked * 1_000):
                if self.over.is_set():
                    return
                path, more = ("entries", {"response": "Two coins."}) if turn % 3 == 0 else ("entries/search", {})
                phase, begun = self.phase, time.perf_counter()
                status = http.post(path, json={"prompt": prompt, **more}).status_code
                self.seen.append((phase, status, time.perf_counter() - begun))

    def rows(self) -> list[list[object]]:
        rows: list[list[object]] = []
        for phase in ("before", "upgrade", "after"):
            times = np.array([seconds * 1000 for at, _, seconds in self.seen if at == phase])
            failed = sum(status >= 500 for at, status, _ in self.seen if at == phase)
            p50, p99 = np.percentile(times, [50, 99])
            rows.append([phase, len(times), failed, p50, p99, times.max()])
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="semcache-bench-") as folder,
        EmbeddedPostgres(Path(folder, "data")) as server,
    ):
        old = old_release(args.commit, Path(folder, "old"))
        upgrade = [sys.executable, "-c", MAIN, "db", "upgrade", "--database-url", server.url]
        subprocess.run(upgrade, cwd=old, env=os.environ | {"PYTHONPATH": str(old)}, check=True)
        with serving(old, server.url) as base:
            made = httpx.post(f"{base}/v1/caches/default/entries", json={"prompt": "Seed?", "response": "Seed."}).json()
            some = np.random.default_rng(0).normal(size=(200, 384)).astype(np.float32)
            fill(server.url, like=made["entryId"], vectors=spread(some, args.entries))
            wait_for_index(server.url)
            load = Load(base)
            with ThreadPoolExecutor(CLIENTS) as pool:
                ends = [pool.submit(load.run, number) for number in range(CLIENTS)]
                time.sleep(10)
                load.phase, begun = "upgrade", time.perf_counter()
                try:
                    migrate.upgrade(server.url)
                finally:
                    took, load.phase = time.perf_counter() - begun, "after"
                    time.sleep(10)
                    load.over.set()
            for end in ends:
                end.result()
        rows = load.rows()
        print(table(HEADERS, rows))
        print(f"upgrade of {args.entries} entries: {took:.1f} s")
        print("statuses:", dict(Counter(f"{phase} {status}" for phase, status, _ in load.seen)))
        if args.json:
            write_json(args.json, HEADERS, rows)


if __name__ == "__main__":
    main()
