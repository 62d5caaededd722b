"""The database goes away and comes back: clear answers meanwhile, fast once that is known, and no hand needed after."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import psycopg
import pytest
from calls import PROBLEM, Cache, assert_problem
from running import Service, running_service
from sqlalchemy import make_url

from service.errors import Code
from service.settings import Settings

ASKED, CLOSE = "How do I prune a pear tree?", "How can I prune a pear tree?"
SECONDS = 20


class Away:
    """A database that lets nobody in until it is told to."""

    def __init__(self, server_url: str, url: str) -> None:
        self._server_url, self._name = server_url, str(make_url(url).database)

    def go(self) -> None:
        self._execute("alter database {} allow_connections false")
        self._execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{}'")

    def come_back(self) -> None:
        self._execute("alter database {} allow_connections true")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(statement.format(self._name).encode())


@pytest.fixture
def replica(server_url: str, new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[tuple[Service, Away]]:
    with new_database() as url:
        away = Away(server_url, url)
        try:
            with running_service(Settings(database_url=url)) as service:
                yield service, away
        finally:
            away.come_back()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, f"not so within {SECONDS} s"


def test_a_lost_database_is_told_fast_and_its_return_is_noticed(replica: tuple[Service, Away]) -> None:
    service, away = replica
    cache = Cache(service.http, "default")
    cache.store(ASKED, "In winter.")
    away.go()
    until(lambda: not service.runtime.db.up or not cache.post("entries/search", {"prompt": "x"}).is_success)
    until(lambda: not service.runtime.db.up)
    for method, path, body in (
        ("POST", f"{cache.entries}/search", {"prompt": CLOSE}),
        ("POST", cache.entries, {"prompt": CLOSE, "response": "y"}),
        ("GET", cache.entries, None),
        ("POST", f"{cache.path}/flush", None),
        ("POST", "/v1/caches", {"name": "new"}),
        ("GET", f"{cache.path}/stats", None),
    ):
        until(lambda: not service.runtime.memory.live)
        begun = time.monotonic()
        got = cache.http.request(method, path, json=body)
        assert time.monotonic() - begun < 1
        assert_problem(got, Code.DATABASE_UNAVAILABLE)
        assert got.headers["retry-after"] == "1"
    batch = cache.post("entries/batch-search", {"searches": [{"prompt": ASKED}]})
    assert batch.headers["content-type"] == PROBLEM
    assert service.http.get("/healthz").status_code == 200
    assert service.http.get("/readyz").json()["waitingFor"] == ["database"]
    assert "semcache_database_up 0.0" in service.http.get("/metrics").text
    away.come_back()
    until(lambda: cache.post("entries/search", {"prompt": ASKED}).is_success)
    assert cache.responses(ASKED) == cache.responses(CLOSE) == ["In winter."]
    cache.store(ASKED, "In spring.")
    assert cache.responses(ASKED) == ["In spring."]
    assert service.http.get("/readyz").status_code == 200


def test_memory_is_not_served_beyond_the_lease(replica: tuple[Service, Away]) -> None:
    service, away = replica
    cache = Cache(service.http, "default")
    cache.store(ASKED, "In winter.")
    until(lambda: bool(cache.responses(ASKED)) and service.runtime.memory.live)
    away.go()
    until(lambda: cache.post("entries/search", {"prompt": ASKED}).status_code == 503)
    assert not service.runtime.memory.live
    assert service.runtime.memory.entries == 1
    away.come_back()
    until(lambda: service.runtime.memory.live)
    assert cache.responses(ASKED) == ["In winter."]


def test_one_failed_statement_is_no_reason_to_give_the_database_up(replica: tuple[Service, Away]) -> None:
    service, _ = replica
    cache = Cache(service.http, "default")
    cache.store(ASKED, "In winter.")
    for _ in range(10):
        with psycopg.connect(service.runtime.db.url, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'semcache' and state = 'idle' and datname = current_database()"
            )
        service.runtime.memory.forget(None, None)
        cache.post("entries/search", {"prompt": ASKED})
    until(lambda: cache.post("entries/search", {"prompt": ASKED}).is_success)
    assert cache.responses(CLOSE) == ["In winter."]
