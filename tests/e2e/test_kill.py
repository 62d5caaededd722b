"""Killed and frozen processes: nothing acknowledged is lost, nothing hangs, all comes back by itself."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import psutil
from calls import PROBLEM, Cache
from postgres_process import family, lives, postmaster

ASKED, CLOSE = "How do I prune a pear tree?", "How can I prune a pear tree?"
SECONDS = 40


class Storm:
    """Threads that store and search, each answer noted; `acknowledged` is what the service said it keeps."""

    def __init__(self, base: str, threads: int = 4) -> None:
        self.acknowledged: dict[str, str] = {}
        self.refused: list[tuple[float, httpx.Response]] = []
        self.slowest = 0.0
        self._base, self._stop = base, threading.Event()
        self._pool = ThreadPoolExecutor(threads)
        self._workers = [self._pool.submit(self._blow, number) for number in range(threads)]

    def _blow(self, thread: int) -> None:
        with httpx.Client(base_url=self._base, timeout=30) as http:
            number = 0
            while not self._stop.is_set():
                number += 1
                prompt, response = f"Berth {number} of pier {thread} holds which ship?", f"ship {thread}-{number}"
                begun = time.monotonic()
                try:
                    got = http.post("/v1/caches/default/entries", json={"prompt": prompt, "response": response})
                except httpx.TransportError:
                    continue
                self.slowest = max(self.slowest, time.monotonic() - begun)
                if got.status_code == 201:
                    self.acknowledged[prompt] = response
                else:
                    self.refused.append((time.monotonic() - begun, got))

    def wait_for(self, more: int) -> None:
        """Until so many further stores are acknowledged."""
        wanted = len(self.acknowledged) + more
        until(lambda: len(self.acknowledged) >= wanted)

    def end(self) -> None:
        self._stop.set()
        for worker in self._workers:
            worker.result()
        self._pool.shutdown()


def until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, f"not so within {SECONDS} s"


def assert_kept(cache: Cache, acknowledged: dict[str, str]) -> None:
    prompts = list(acknowledged)
    for start in range(0, len(prompts), 100):
        part = prompts[start : start + 100]
        searches = [{"prompt": prompt, "searchStrategies": ["exact"]} for prompt in part]
        rows = cache.post("entries/batch-search", {"searches": searches}).json()["data"]
        found = [[hit["response"] for hit in row["result"]["data"]] for row in rows]
        assert found == [[acknowledged[prompt]] for prompt in part]


def test_kill_9_of_the_service_in_a_storm_loses_nothing_acknowledged(serve: Any, data_dir: Path) -> None:
    first = serve("--data-dir", str(data_dir))
    first.cache.store(ASKED, "flushed")
    assert first.http.post("/v1/caches/default/flush").status_code == 204
    below = first.family
    assert below, "the worker runs beside the service"
    storm = Storm(str(first.http.base_url))
    storm.wait_for(60)
    first.kill()
    storm.end()
    psutil.wait_procs(below, 20)
    assert not [process for process in below if lives(process)], "the worker ends with its service"
    second = serve("--data-dir", str(data_dir))
    assert_kept(second.cache, storm.acknowledged)
    assert second.cache.responses(ASKED) == []
    second.cache.store(ASKED, "In winter.")
    assert second.cache.responses(CLOSE) == ["In winter."]


def test_kill_9_of_postgres_in_a_storm_is_told_and_mended_without_a_hand(serve: Any, data_dir: Path) -> None:
    service = serve("--data-dir", str(data_dir), "--without-worker")
    service.cache.store(ASKED, "In winter.")
    storm = Storm(str(service.http.base_url))
    for _ in range(2):
        storm.wait_for(30)
        before = postmaster(data_dir)
        before.kill()
        before.wait(20)
        storm.wait_for(30)
        assert postmaster(data_dir) != before
    storm.end()
    assert storm.slowest < 5
    for _, got in storm.refused:
        assert (got.status_code, got.headers["content-type"]) == (503, PROBLEM), got.text
        assert got.json()["code"] == "database_unavailable"
    assert_kept(service.cache, storm.acknowledged | {ASKED: "In winter."})
    assert service.cache.responses(CLOSE) == ["In winter."]
    assert service.end() == 0
    assert not (data_dir / "postgres" / "postmaster.pid").exists()


def test_a_frozen_postgres_makes_no_request_hang(serve: Any, data_dir: Path) -> None:
    service = serve("--data-dir", str(data_dir), "--without-worker", SEMCACHE_DATABASE_TIMEOUT="1")
    service.cache.store(ASKED, "In winter.")
    frozen = family(data_dir)
    for process in frozen:
        process.suspend()
    try:
        times = []
        for number in range(8):
            begun = time.monotonic()
            got = service.cache.post("entries/search", {"prompt": f"Who rings bell {number}?"})
            times.append(time.monotonic() - begun)
            assert (got.status_code, got.headers["content-type"]) == (503, PROBLEM), got.text
        assert max(times) < 2.5, times
        assert max(times[-3:]) < 0.5, f"the breaker is open by now: {times}"
        assert service.http.get("/healthz").elapsed.total_seconds() < 0.5
    finally:
        for process in frozen:
            if lives(process):
                process.resume()
    until(lambda: service.cache.post("entries/search", {"prompt": CLOSE}).is_success)
    assert service.cache.responses(CLOSE) == ["In winter."]


def test_a_frozen_or_killed_replica_is_waited_for_and_serves_nothing_that_was_deleted(
    serve: Any, new_database: Callable[[], AbstractContextManager[str]]
) -> None:
    """A request that reached it while it was frozen is answered after the delete was acknowledged: rightly."""
    with new_database() as url:
        first, second = serve("--database-url", url), serve("--database-url", url)
        assert first.family == second.family == [], "an own database gets a worker only on request"
        freeze_and_delete(first, second)
        assert second.cache.responses(ASKED) == second.cache.responses(CLOSE) == []
        second.kill()
        assert 0.2 < seconds(lambda: first.http.post("/v1/caches/default/flush").raise_for_status()) < 1.5
        assert seconds(lambda: first.http.post("/v1/caches/default/flush").raise_for_status()) < 0.5


def freeze_and_delete(first: Any, second: Any) -> None:
    for number in range(3):
        entry = first.cache.store(ASKED, f"old {number}")
        for _ in range(20):
            assert second.cache.responses(ASKED) == [f"old {number}"]
        second.signal(signal.SIGSTOP)
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(second_search, str(second.http.base_url)) for _ in range(4)]
            path = f"/v1/caches/default/entries/{entry}"
            waited = seconds(lambda path=path: first.http.delete(path).raise_for_status())
            second.signal(signal.SIGCONT)
            assert [search.result() for search in waiting] == [[]] * 4
        assert 0.2 < waited < 1.5, "as long as the lease of one second may last, and no longer"


def seconds(work: Callable[[], Any]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def second_search(base: str) -> list[str]:
    with httpx.Client(base_url=base, timeout=30) as http:
        return Cache(http, "default").responses(ASKED)
