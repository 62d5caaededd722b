"""`pgsemcache serve` as its user meets it: how it starts, joins, refuses and ends."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from postgres_process import lives, postmaster
from processes import run

from tests.fakes.upstream import EVENTS, FakeUpstream, Reply

ASKED, CLOSE = "How do I prune a pear tree?", "How can I prune a pear tree?"


def test_it_greets_and_ends_with_worker_and_postgres_within_seconds(serve: Any, data_dir: Path) -> None:
    service = serve("--data-dir", str(data_dir))
    service.cache.store(ASKED, "In winter.")
    below, server = service.family, postmaster(data_dir)
    assert below, "the worker runs beside the service"
    begun = time.monotonic()
    assert service.end() == 0
    assert time.monotonic() - begun < 20
    assert not [process for process in (*below, server) if lives(process)]
    assert not (data_dir / "postgres" / "postmaster.pid").exists()
    said, err = service.process.stdout.read(), service.process.stderr.read()
    assert [
        word for word in (f"data directory   {data_dir}", "psql", "/v1/caches/default/entries") if word not in said
    ] == []
    assert "Traceback" not in err


@pytest.fixture
def terminal() -> Iterator[None]:
    """What is started hears when its terminal closes, also where the tests run under nohup."""
    usual = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, usual)


@pytest.mark.usefixtures("terminal")
def test_closing_its_terminal_ends_it_with_worker_and_postgres(serve: Any, data_dir: Path) -> None:
    service = serve("--data-dir", str(data_dir))
    below, server = service.family, postmaster(data_dir)
    for process in (service.process, *below):
        process.send_signal(signal.SIGHUP)
    assert service.process.wait(20) == 0
    assert not [process for process in (*below, server) if lives(process)]


def test_a_request_in_flight_is_answered_before_the_end(serve: Any, data_dir: Path) -> None:
    service = serve("--data-dir", str(data_dir), "--without-worker")
    entries = [{"prompt": f"Who rings bell {n} of the old tower?", "response": str(n)} for n in range(200)]
    answers = []

    def store() -> None:
        answers.append(service.http.post("/v1/caches/default/entries/batch", json={"entries": entries}))

    asking = threading.Thread(target=store)
    asking.start()
    while not service.http.get("/metrics").is_success or not service.cache.listed():
        assert asking.is_alive()
    assert service.end() == 0
    asking.join()
    assert [item["status"] for item in answers[0].json()["data"]] == [201] * 200


def test_a_second_service_joins_the_running_postgres_and_the_last_one_stops_it(serve: Any, data_dir: Path) -> None:
    first = serve("--data-dir", str(data_dir))
    second = serve("--data-dir", str(data_dir))
    server = postmaster(data_dir)
    first.cache.store(ASKED, "In winter.")
    assert second.cache.responses(ASKED) == second.cache.responses(CLOSE) == ["In winter."]
    first.signal(signal.SIGINT)
    assert first.process.wait(20) == 0
    assert lives(server)
    assert second.cache.responses(CLOSE) == ["In winter."]
    assert second.end() == 0
    assert not lives(server)


def test_another_address_than_loopback_wants_a_key_first(serve: Any, data_dir: Path) -> None:
    where = ("--data-dir", str(data_dir))
    status, out, err = run("pgsemcache", "serve", "--host", "0.0.0.0", "--port", "0", *where)
    assert (status, out) == (1, "")
    assert "pgsemcache keys create --tenant NAME" in err
    assert "Traceback" not in err
    status, key, err = run("pgsemcache", "keys", "create", "--tenant", "north", *where)
    assert status == 0, err
    service = serve("--host", "0.0.0.0", "--without-worker", *where)
    assert service.http.get("/v1/caches/default").status_code == 401
    service.http.headers["authorization"] = f"Bearer {key.strip()}"
    assert service.http.get("/v1/caches/default").status_code == 200


def test_a_bad_setting_is_told_in_one_line(tmp_path: Path) -> None:
    status, out, err = run("pgsemcache", "serve", "--data-dir", str(tmp_path / "data"), SEMCACHE_POOL_MAX="0")
    assert (status, out) == (1, "")
    assert err == "pgsemcache: SEMCACHE_POOL_MAX: Input should be greater than or equal to 1\n"


def test_a_schema_that_is_behind_is_refused_by_the_command_that_mends_it(empty_database_url: str) -> None:
    status, _, err = run("pgsemcache", "serve", "--port", "0", "--database-url", empty_database_url)
    assert status == 1
    assert "pgsemcache db upgrade" in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


def test_an_own_database_gets_a_worker_on_request(
    serve: Any, new_database: Callable[[], AbstractContextManager[str]]
) -> None:
    with new_database() as url:
        service = serve("--database-url", url, "--with-worker", "--upstream", "http://127.0.0.1:9/v1")
        (worker,) = service.family
        assert worker.environ()["SEMCACHE_UPSTREAM"] == "http://127.0.0.1:9/v1", "what it asks ahead goes there too"
        assert service.end() == 0
        psutil.wait_procs([worker], 10)
        assert not lives(worker)


async def test_an_open_stream_does_not_hold_up_the_end(serve: Any, data_dir: Path) -> None:
    never = asyncio.Event()
    async with FakeUpstream() as upstream:
        upstream.on(
            "/v1/chat/completions",
            Reply(headers={"content-type": EVENTS}, chunks=[b": first\n\n"] * 2, gates={1: never}),
        )
        where = ("--data-dir", str(data_dir), "--without-worker", "--upstream", upstream.url)
        service = await asyncio.to_thread(serve, *where)
        asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": ASKED}]}
        async with (
            httpx.AsyncClient(base_url=service.http.base_url, timeout=30) as http,
            http.stream("POST", "/v1/chat/completions", json=asked) as answer,
        ):
            assert answer.status_code == 200
            begun = time.monotonic()
            assert await asyncio.to_thread(service.end) == 0
            assert time.monotonic() - begun < 11
        never.set()
    assert "Traceback" not in service.process.stderr.read()
