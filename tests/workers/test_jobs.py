"""Jobs: done in batches, by whoever comes, and killed at any point they go on where they were."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from calls import Cache, assert_problem, new_cache
from processes import kill_waiting, run, start
from running import Service, running_service

from service.cache import jobs
from service.errors import Code
from service.settings import Settings
from service.store import jobs as store
from service.store.database import Database
from tests.fakes.embeddings import embedding_server
from workers import jobs as task


def lines(count: int) -> list[dict[str, Any]]:
    return [{"prompt": f"Who owns boat {n}?", "response": f"Owner {n}.", "tags": ["boats"]} for n in range(count)]


def ask_for(cache: Cache, kind: str, **more: Any) -> dict[str, Any]:
    got = cache.post("jobs", {"kind": kind, **more})
    assert got.status_code == 202, got.text
    return dict(got.json())


def look(cache: Cache, job: dict[str, Any]) -> dict[str, Any]:
    got = cache.http.get(f"{cache.path}/jobs/{job['id']}")
    assert got.status_code == 200, got.text
    return dict(got.json())


def exported(cache: Cache, job: dict[str, Any]) -> list[dict[str, Any]]:
    text = cache.http.get(f"{cache.path}/jobs/{job['id']}/lines").text
    return [json.loads(line) for line in text.splitlines()]


async def test_an_import_stores_every_line_and_says_which_it_could_not(
    service: Service, settings: Settings, worker: Database
) -> None:
    cache = new_cache(service.http)
    given = [*lines(3), {"prompt": "x", "response": "y", "scope": {"sampling": {"messages": []}}}]
    job = ask_for(cache, "import", entries=given)
    assert (job["state"], job["total"]) == ("queued", 4)
    await task.run_once(worker, settings)
    done = look(cache, job)
    assert (done["state"], done["done"], done["failed"]) == ("done", 3, 1)
    assert done["errors"][0]["line"] == 4
    assert "must not hold messages" in done["errors"][0]["rule"]
    assert cache.responses("Who owns boat 2?") == ["Owner 2."]
    (hit,) = cache.look("Who owns boat 2?")["data"]
    assert (hit["provenance"], hit["tags"]) == ("import", ["boats"])
    assert service.http.get(f"{cache.path}/jobs").json()["data"][0]["id"] == job["id"]


async def test_a_line_of_the_wrong_types_and_a_fault_end_and_hold_up_nothing(
    service: Service, settings: Settings, worker: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = new_cache(service.http)
    cache.store("Who owns the raft?", "Ada.")
    export = ask_for(cache, "export")
    await task.run_once(worker, settings)
    (line,) = exported(cache, export)
    forged = ask_for(cache, "import", entries=[line | {"stored": line["stored"] | {"model": {"name": 5}}}])
    await task.run_once(worker, settings)
    assert (look(cache, forged)["state"], look(cache, forged)["failed"]) == ("done", 1)

    async def fault(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("service.cache.jobs.take_line", fault)
    broken, behind = ask_for(cache, "import", entries=lines(1)), ask_for(cache, "export")
    await task.run_once(worker, settings)
    assert look(cache, broken)["state"] == "failed"
    assert "ZeroDivisionError" in look(cache, broken)["errors"][0]["rule"]
    assert look(cache, behind)["state"] == "done"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "import"}, "entries"),
        ({"kind": "export", "entries": [{}]}, "entries"),
        ({"kind": "import", "entries": [{"prompt": "x", "response": "y"}, {"prompt": ""}]}, "entries.1"),
        ({"kind": "import", "entries": [{"prompt": "x", "response": "y", "nope": 1}]}, "nope"),
        ({"kind": "import", "entries": [7]}, "entries"),
        ({"kind": "polish"}, "kind"),
    ],
)
def test_what_is_wrong_is_told_before_anything_begins(service: Service, body: dict[str, Any], said: str) -> None:
    cache = new_cache(service.http)
    assert_problem(cache.post("jobs", body), Code.INVALID_DATA, said)
    assert service.http.get(f"{cache.path}/jobs").json() == {"data": []}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("costMs", 1e300),
        ("costMs", "5"),
        ("exactKey", "ab"),
        ("parts", "none"),
        ("parts", {"\x00": "0" * 64}),
        ("parts", {"system": "\x00"}),
    ],
)
async def test_an_exported_line_that_was_changed_names_its_bad_field(
    service: Service, settings: Settings, worker: Database, field: str, value: object
) -> None:
    cache = new_cache(service.http)
    cache.store("Who owns the raft?", "Ada.")
    export = ask_for(cache, "export")
    await task.run_once(worker, settings)
    (line,) = exported(cache, export)
    changed = line | {"stored": line["stored"] | {field: value}}
    got = cache.post("jobs", {"kind": "import", "entries": [line, changed]})
    assert_problem(got, Code.INVALID_DATA, f"entries.1.stored.{field}")


async def test_progress_counts_what_is_exported_and_ends_at_100(
    service: Service, settings: Settings, worker: Database, database_url: str
) -> None:
    cache = new_cache(service.http)
    cache.store("Living?", "Yes.")
    for question in ("Expired?", "Quarantined?"):
        cache.store(question, "No.")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update semcache.entry set expires_at = now() where prompt = 'Expired?'")
        connection.execute("update semcache.entry set quarantined_at = now() where prompt = 'Quarantined?'")
        job, grown, empty = (
            ask_for(cache, "export"),
            ask_for(cache, "export"),
            ask_for(new_cache(service.http), "export"),
        )
        cache.store("Another?", "Yes.")
        await task.run_once(worker, settings)
        assert (look(cache, job)["total"], look(cache, grown)["done"], empty["total"]) == (1, 2, 0)
        assert connection.execute("select distinct percent from semcache.jobs").fetchall() == [(100,)]


def test_another_caches_job_and_none_are_not_found(service: Service) -> None:
    cache, other = new_cache(service.http), new_cache(service.http)
    job = ask_for(cache, "export")
    for where, job_id in ((other, job["id"]), (cache, uuid4().hex), (cache, "x")):
        for method in ("GET", "DELETE"):
            assert_problem(where.http.request(method, f"{where.path}/jobs/{job_id}"), Code.JOB_NOT_FOUND)


async def test_what_is_exported_and_imported_is_found_as_before(
    service: Service,
    settings: Settings,
    worker: Database,
    new_database: Callable[[], AbstractContextManager[str]],
) -> None:
    cache = Cache(service.http, "default")
    odd = "U+0000 \x00, half a pair \ud83d, and a tab\t"
    cache.store("Who owns boat 7?", odd, attributes={"lang": "en"}, ttlMillis=600_000, scope={"system": "Be brief."})
    cache.store("x" * 3_000, "Too long for neighbours.")
    job = ask_for(cache, "export")
    await task.run_once(worker, settings)
    written = exported(cache, job)
    assert [line["response"] for line in written] == [odd, "Too long for neighbours."]
    with new_database() as url, running_service(Settings(database_url=url)) as second:
        there = Cache(second.http, "default")
        asked = ask_for(there, "import", entries=written)
        elsewhere = new_cache(second.http)
        asked_elsewhere = ask_for(elsewhere, "import", entries=written)
        door = Database(url, worker._limits, role="semcache_worker")
        await door.open()
        await task.run_once(door, Settings(database_url=url))
        await door.close()
        assert look(there, asked)["done"] == 2
        assert there.responses("Who owns boat 7?", scope={"system": "Be brief."}) == [odd]
        assert there.responses("Who owns boat 7?") == [], "the scope came too"
        (hit,) = there.look("Who owns boat 7?", scope={"system": "Be brief."})["data"]
        assert (hit["searchStrategy"], hit["attributes"]) == ("exact", {"lang": "en"})
        assert 500_000 < hit["ttlMillis"] < 600_000
        assert there.responses("x" * 3_000) == ["Too long for neighbours."]
        result = look(elsewhere, asked_elsewhere)
        assert (result["done"], result["failed"]) == (1, 1)
        assert "only be found exactly" in result["errors"][0]["rule"]
        (hit,) = elsewhere.look("Who owns boat 7?", scope={"system": "Be brief."})["data"]
        assert hit["searchStrategy"] == "semantic"


async def test_all_variants_of_an_answer_are_imported_and_replaced(
    service: Service, settings: Settings, worker: Database
) -> None:
    cache = new_cache(service.http)
    cache.store("Who owns boat 7?", "Owner 0.")
    ask_for(cache, "export")
    await task.run_once(worker, settings)
    (line,) = exported(cache, service.http.get(f"{cache.path}/jobs").json()["data"][0])
    assert line["stored"]["variants"] == 1
    line["stored"]["variants"] = 3
    for batch in ("abc", "bcd"):
        for name in batch:
            line["stored"]["answer"]["body"]["choices"][0]["message"]["content"] = name
            ask_for(cache, "import", entries=[line])
            await task.run_once(worker, settings)
        assert sorted(row["response"] for row in cache.listed()) == list(batch)
    job = ask_for(cache, "export")
    await task.run_once(worker, settings)
    assert [written["stored"]["variants"] for written in exported(cache, job)] == [3, 3, 3]


async def test_a_cancelled_job_stops_where_it_is(service: Service, worker: Database) -> None:
    cache = new_cache(service.http)
    job = ask_for(cache, "import", entries=lines(150))
    holder = uuid4()
    claimed = await store.claim(worker, holder, 60)
    assert claimed is not None
    assert service.http.delete(f"{cache.path}/jobs/{job['id']}").status_code == 204
    await jobs.work(service.runtime, claimed, holder)
    assert (look(cache, job)["state"], look(cache, job)["done"]) == ("cancelled", 0)
    assert await store.claim(worker, holder, 60) is None
    assert service.http.delete(f"{cache.path}/jobs/{job['id']}").status_code == 204


async def test_a_job_of_a_deleted_cache_leaves_the_next_one_of_its_name_alone(
    service: Service, settings: Settings, worker: Database
) -> None:
    cache = new_cache(service.http)
    ask_for(cache, "import", entries=lines(3))
    assert service.http.delete(cache.path).status_code == 204
    assert service.http.post("/v1/caches", json={"name": cache.name}).status_code == 201
    await task.run_once(worker, settings)
    assert cache.listed() == []
    async with worker.connection() as connection:
        row = await connection.one("select state, errors from semcache.job")
    assert row["state"] == "failed"
    assert "was deleted" in row["errors"][0]["rule"]


async def test_jobs_take_turns(service: Service, worker: Database) -> None:
    cache = new_cache(service.http)
    asked = [ask_for(cache, "import", entries=lines(150)) for _ in range(2)]
    order = []
    holder = uuid4()
    while (claimed := await store.claim(worker, holder, 60)) is not None:
        order.append(claimed.job_id.hex)
        await jobs.work(service.runtime, claimed, holder)
    first, second = (job["id"] for job in asked)
    assert order == [first, second, first, second]
    assert len(cache.listed()) == 150


async def test_a_batch_whose_lease_ran_out_counts_once(service: Service, worker: Database) -> None:
    cache = new_cache(service.http)
    cache.store("a", "1")
    cache.store("b", "2")
    job = ask_for(cache, "export")
    slow, quick = uuid4(), uuid4()
    first = await store.claim(worker, slow, 0)
    second = await store.claim(worker, quick, 60)
    assert first is not None
    assert second is not None
    await jobs.work(service.runtime, second, quick)
    await jobs.work(service.runtime, first, slow)
    assert (look(cache, job)["done"], len(exported(cache, job))) == (2, 2)


async def test_the_lease_of_a_slow_batch_is_renewed(
    service: Service, worker: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = new_cache(service.http)
    job = ask_for(cache, "export")
    holder = uuid4()
    claimed = await store.claim(worker, holder, 60)
    assert claimed is not None

    async def slow(*_: object) -> store.Batch:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await connection.execute("update semcache.job set leased_until = now()")
            renewed = "select from semcache.job where leased_until > now() + interval '50 s'"
            async with asyncio.timeout(20):
                while (await connection.execute(renewed)).rowcount == 0:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.01)
        assert await store.claim(worker, uuid4(), 60) is None
        return store.Batch(None, ended=True)

    monkeypatch.setattr(jobs, "RENEWALS", 1000)
    monkeypatch.setitem(jobs._KINDS, "export", slow)
    await jobs.work(service.runtime, claimed, holder)
    assert look(cache, job)["state"] == "done"


async def test_entries_get_vectors_of_another_embedder(database_url: str, worker: Database) -> None:
    with embedding_server() as fake:
        old = Settings(
            database_url=database_url,
            embedder="remote",
            embedder_url=fake.url,
            embedder_model="old",
            embedder_languages=("mul",),
        )
        new = Settings(database_url=database_url)
        with running_service(old) as service:
            cache = Cache(service.http, "default")
            cache.store("Where can I moor my boat?", "At pier 3.")
            cache.store("x" * 3_000, "Long.")
        with running_service(new) as service:
            cache = Cache(service.http, "default")
            assert cache.responses("Where can I moor my boat, please?") == []
            job = ask_for(cache, "re-embed")
            await task.run_once(worker, new)
            assert look(cache, job)["state"] == "done"
            assert cache.responses("Where can I moor my boat, please?") == ["At pier 3."]
            again = ask_for(cache, "re-embed")
            await task.run_once(worker, new)
            assert look(cache, again)["done"] == look(cache, again)["total"] - look(cache, again)["failed"]


def test_a_worker_killed_in_an_import_is_followed_by_another(service: Service, database_url: str) -> None:
    """Every line is stored, once."""
    cache = new_cache(service.http)
    job = ask_for(cache, "import", entries=lines(400))
    with psycopg.connect(database_url, autocommit=True) as connection:
        first = start("pgsemcache", "worker", "--database-url", database_url)
        while not 0 < look(cache, job)["done"] < 400:
            assert first.poll() is None
        first.kill()
        first.communicate()
        assert look(cache, job)["state"] == "running"
        connection.execute("update semcache.task set leased_until = now()")
        connection.execute("update semcache.job set leased_until = now() where leased_until is not null")
        second = start("pgsemcache", "worker", "--database-url", database_url)
        while look(cache, job)["state"] != "done":
            assert second.poll() is None
        second.send_signal(signal.SIGTERM)
        second.communicate(timeout=20)
        assert second.returncode == 0
    assert look(cache, job)["done"] == 400
    assert sorted(row["prompt"] for row in cache.listed()) == sorted(line["prompt"] for line in lines(400))


def test_a_worker_killed_in_a_re_embedding_is_followed_by_another(database_url: str) -> None:
    """Every entry gets one vector and counts once, though the batch at hand is done again."""
    vectors = "select count(*) from semcache.embedding group by embedder_id order by embedder_id"
    with embedding_server() as fake, psycopg.connect(database_url) as sql:
        old = Settings(database_url=database_url, embedder="remote", embedder_url=fake.url, embedder_model="old")
        new = {"SEMCACHE_EMBEDDER": "remote", "SEMCACHE_EMBEDDER_URL": fake.url, "SEMCACHE_EMBEDDER_MODEL": "new"}
        with running_service(old) as service:
            cache = Cache(service.http, "default")
            for some in (lines(130)[:65], lines(130)[65:]):
                assert cache.post("entries/batch", {"entries": some}).is_success
            job = ask_for(cache, "re-embed")
            # The worker waits in its second batch.
            sql.execute(
                "select from semcache.entry where entry_id = "
                "(select entry_id from semcache.entry order by created_at, entry_id offset 119 limit 1) for update"
            )
            first = start("pgsemcache", "worker", "--database-url", database_url, **new)
            with psycopg.connect(database_url, autocommit=True) as watching:
                while watching.execute(vectors).fetchall() != [(130,), (119,)]:
                    assert first.poll() is None
                kill_waiting(first, watching)
            assert (look(cache, job)["state"], look(cache, job)["done"]) == ("running", 100)
            sql.rollback()
            sql.execute("update semcache.task set leased_until = now()")
            sql.execute("update semcache.job set leased_until = now()")
            sql.commit()
            second = start("pgsemcache", "worker", "--database-url", database_url, **new)
            while look(cache, job)["state"] != "done":
                assert second.poll() is None
            second.send_signal(signal.SIGTERM)
            second.communicate(timeout=20)
            assert (look(cache, job)["done"], look(cache, job)["failed"]) == (130, 0)
            assert sql.execute(vectors).fetchall() == [(130,), (130,)]


def test_files_go_out_and_in_by_the_command_line(service: Service, database_url: str, tmp_path: Any) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(
        "".join(json.dumps(line) + "\n" for line in [*lines(5), {"prompt": "y", "response": "z", "ttlMillis": 1}])
    )
    status, _, err = run("pgsemcache", "import", str(file), "--database-url", database_url)
    assert (status, err) == (0, "6 entries imported, 0 not\n"), "progress is for a terminal alone"
    assert Cache(service.http, "default").responses("Who owns boat 4?") == ["Owner 4."]
    status, out, err = run("pgsemcache", "export", "-", "--database-url", database_url)
    assert (status, err) == (0, "5 entries exported\n")
    assert [json.loads(line)["response"] for line in out.splitlines()] == [f"Owner {n}." for n in range(5)]
    for command in (("import", str(file)), ("export", "-")):
        status, _, err = run("pgsemcache", *command, "--tenant", "acne", "--database-url", database_url)
        assert (status, "no tenant of this name" in err) == (1, True), err
    file.write_text('{"prompt": "a", "response": "b"}\n{"prompt": 7}\n')
    status, _, err = run("pgsemcache", "import", str(file), "--database-url", database_url)
    assert status == 1
    assert "line 2" in err
    assert Cache(service.http, "default").responses("a") == []
    status, _, err = run("pgsemcache", "export", "-", "--cache", "nowhere", "--database-url", database_url)
    assert (status, "there is no cache of this name" in err) == (1, True)


def test_ids_are_uuids(service: Service) -> None:
    assert UUID(ask_for(new_cache(service.http), "export")["id"])
