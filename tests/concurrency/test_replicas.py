"""Replicas on one database: what one has acknowledged holds on the others' very next lookup."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
import pytest
from calls import Cache, assert_problem, new_cache, send
from running import Service, running_service

from service.errors import Code
from service.json_text import dumps
from service.settings import Settings

NewDatabase = Callable[[], AbstractContextManager[str]]
ASKED, CLOSE = "How do I prune a pear tree?", "How can I prune a pear tree?"
JSON = {"content-type": "application/json"}
LEASE = 1.0


@contextmanager
def two_replicas(new_database: NewDatabase, **other: int) -> Iterator[tuple[Service, Service]]:
    with new_database() as url:
        one, two = Settings(database_url=url), Settings(database_url=url, **other)
        with running_service(one) as first, running_service(two) as second:
            yield first, second


@pytest.fixture(scope="module")
def replicas(new_database: NewDatabase) -> Iterator[tuple[Service, Service]]:
    with two_replicas(new_database) as both:
        yield both


@pytest.fixture
def here_and_there(replicas: tuple[Service, Service]) -> tuple[Cache, Cache]:
    here = new_cache(replicas[0].http)
    return here, Cache(replicas[1].http, here.name)


def remembers(service: Service) -> bool:
    """Whether the service has an answer in memory that it may serve now."""
    return service.runtime.memory.live and service.runtime.memory.entries > 0


CHANGES: dict[str, tuple[str, str, Any]] = {
    "deleted": ("DELETE", "/entries/{entry}", None),
    "deleted by tag": ("DELETE", "/entries", {"tags": ["t"]}),
    "quarantined": ("PATCH", "/entries/{entry}", {"quarantined": True}),
    "called wrong": ("POST", "/feedback", {"entryId": "{entry}", "verdict": "wrong"}),
    "called stale": ("POST", "/feedback", {"entryId": "{entry}", "verdict": "stale"}),
    "flushed": ("POST", "/flush", None),
    "switched off": ("PATCH", "", {"policy": {"mode": "off"}}),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_what_one_replica_changed_holds_on_the_other_at_once(
    replicas: tuple[Service, Service], here_and_there: tuple[Cache, Cache], change: str
) -> None:
    here, there = here_and_there
    method, rest, body = CHANGES[change]
    remembered = 0
    for number in range(30):
        send(here.http, "PATCH", here.path, {"policy": {"mode": None}})
        entry = here.store(ASKED, f"old {number}", tags=["t"])
        assert there.responses(ASKED) == there.responses(ASKED) == [f"old {number}"]
        remembered += remembers(replicas[1])
        content = dumps(body).replace("{entry}", entry) if body else ""
        path = f"{here.path}{rest.format(entry=entry)}"
        here.http.request(method, path, content=content, headers=JSON).raise_for_status()
        assert there.responses(ASKED) == there.responses(CLOSE) == [], f"round {number}"
    assert remembered > 20, "the other replica had nothing in memory, so the test shows nothing"


def test_what_one_replica_stored_anew_is_found_on_the_other_at_once(here_and_there: tuple[Cache, Cache]) -> None:
    here, there = here_and_there
    for number in range(100):
        (here if number % 2 else there).store(ASKED, str(number))
        assert here.responses(ASKED) == there.responses(ASKED) == [str(number)]
        assert here.responses(CLOSE) == there.responses(CLOSE) == [str(number)]


def test_a_deleted_cache_is_gone_on_the_other_at_once(replicas: tuple[Service, Service]) -> None:
    for _ in range(20):
        here = new_cache(replicas[0].http)
        there = Cache(replicas[1].http, here.name)
        here.store(ASKED, "old")
        assert there.responses(ASKED) == there.responses(ASKED) == ["old"]
        assert here.http.delete(here.path).status_code == 204
        assert_problem(there.post("entries/search", {"prompt": ASKED}), Code.CACHE_NOT_FOUND)
        assert_problem(there.post("entries", {"prompt": ASKED, "response": "x"}), Code.CACHE_NOT_FOUND)


def test_readers_never_go_back_behind_an_acknowledged_store(
    replicas: tuple[Service, Service], here_and_there: tuple[Cache, Cache]
) -> None:
    """One writer counts upwards; whoever asks after an acknowledgement sees that number or a later one."""
    here, there = here_and_there
    acknowledged, done = 0, threading.Event()
    here.store(ASKED, "0")

    def keep_reading(cache: Cache) -> int:
        reads = 0
        while not done.is_set():
            least = acknowledged
            (response,) = cache.responses(ASKED)
            assert int(response) >= least
            reads += 1
        return reads

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(keep_reading, cache) for cache in (here, there, there)]
        try:
            for number in range(1, 151):
                here.store(ASKED, str(number))
                acknowledged = number
        finally:
            done.set()
        assert min(reader.result() for reader in readers) > 10


def test_two_writers_of_one_prompt_leave_one_answer_on_both(here_and_there: tuple[Cache, Cache]) -> None:
    def write(cache: Cache, name: str) -> None:
        for number in range(25):
            cache.store(ASKED, f"{name} {number}")

    with ThreadPoolExecutor(2) as pool:
        for written in [pool.submit(write, cache, f"writer {i}") for i, cache in enumerate(here_and_there)]:
            written.result()
    here, there = here_and_there
    assert here.responses(ASKED) == there.responses(ASKED)
    assert [row["response"] for row in here.listed()] == here.responses(ASKED)


def freeze(service: Service) -> None:
    """End the loops that keep the replica's lease and hear of invalidations, while it goes on serving."""
    coherence = service.runtime.coherence
    for task in coherence._tasks:
        task.get_loop().call_soon_threadsafe(task.cancel)


def test_a_replica_that_no_longer_follows_is_waited_for_until_its_lease_is_over(new_database: NewDatabase) -> None:
    with two_replicas(new_database) as (first, second):
        here, there = Cache(first.http, "default"), Cache(second.http, "default")
        entry = here.store(ASKED, "old")
        while not remembers(second):
            there.look(ASKED)
        freeze(second)
        begun = time.monotonic()
        assert here.http.delete(f"{here.entries}/{entry}").status_code == 204
        waited = time.monotonic() - begun
        assert not second.runtime.memory.live
        assert there.responses(ASKED) == there.responses(CLOSE) == []
        assert waited < LEASE + 0.5
        begun = time.monotonic()
        here.http.post(f"{here.path}/flush").raise_for_status()
        assert time.monotonic() - begun < LEASE / 2, "nobody is waited for whose lease is over"
        here.store(ASKED, "new")
        assert there.responses(ASKED) == ["new"]


def test_without_notifications_all_stays_right(new_database: NewDatabase) -> None:
    with two_replicas(new_database) as (first, second):
        here, there = Cache(first.http, "default"), Cache(second.http, "default")
        for number in range(3):
            here.store(ASKED, f"old {number}")
            assert there.responses(ASKED) == there.responses(ASKED) == [f"old {number}"]
            with psycopg.connect(first.runtime.db.url, autocommit=True) as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where application_name = 'semcache listen' and datname = current_database()"
                )
            begun = time.monotonic()
            here.http.post(f"{here.path}/flush").raise_for_status()
            assert time.monotonic() - begun < 2 * LEASE
            assert there.responses(ASKED) == []


def test_a_replica_without_memory_is_right_too(new_database: NewDatabase) -> None:
    with two_replicas(new_database, l1_entries=0) as (first, second):
        here, there = Cache(first.http, "default"), Cache(second.http, "default")
        for number in range(5):
            here.store(ASKED, str(number))
            assert there.responses(ASKED) == there.responses(ASKED) == [str(number)]
        assert second.runtime.memory.entries == 0


def test_equal_searches_at_once_embed_as_much_as_one(replicas: tuple[Service, Service]) -> None:
    cache = new_cache(replicas[0].http)
    cache.store(ASKED, "In winter.")
    embedder = replicas[0].runtime.embedder.embedder
    assert embedder is not None

    def embedded(work: Callable[[], Any]) -> int:
        before = embedder.counts.texts
        work()
        return embedder.counts.texts - before

    def together() -> None:
        fresh = {"prompt": "Which month suits the pruning of a pear tree best?"}
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: cache.post("entries/search", fresh).status_code, range(24)))
        items = cache.post("entries/batch-search", {"searches": [fresh] * 24}).json()["data"]
        assert found + [item["status"] for item in items] == [200] * 48

    assert embedded(together) == embedded(lambda: cache.look("Which month suits the pruning of a plum tree best?")) > 0
