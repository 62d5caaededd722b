"""API keys: made, listed and revoked by the command line, obeyed by a running service at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from calls import Cache, assert_problem, new_cache
from processes import run
from running import Service, running_service
from typer.testing import CliRunner

from service.cli import app
from service.errors import Code, SemcacheError
from service.settings import Settings

ASKED, CLOSE = "What is our parental leave rule?", "What's our parental leave rule?"


def keys(url: str, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["keys", *arguments, "--database-url", url])
    assert done.exit_code == 0, done.output
    return done.output.strip()


def keys_process(url: str, *arguments: str) -> str:
    status, out, err = run("pgsemcache", "keys", *arguments, "--database-url", url)
    assert status == 0, err
    return out.strip()


@pytest.fixture(scope="module")
def guarded(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[tuple[Service, str, str]]:
    """A service with two tenants, and their keys; it knew none when it started."""
    with new_database() as url, running_service(Settings(database_url=url)) as service:
        assert service.http.get("/v1/caches/default").status_code == 200
        north = keys_process(url, "create", "--tenant", "north")
        assert_problem(service.http.get("/v1/caches/default"), Code.UNAUTHENTICATED, "pgsemcache keys create")
        yield service, north, keys(url, "create", "--tenant", "south")


@pytest.fixture
def north(guarded: tuple[Service, str, str]) -> Iterator[httpx.Client]:
    with client(guarded[0], guarded[1]) as http:
        yield http


@pytest.fixture
def south(guarded: tuple[Service, str, str]) -> Iterator[httpx.Client]:
    with client(guarded[0], guarded[2]) as http:
        yield http


def client(service: Service, key: str) -> httpx.Client:
    return httpx.Client(base_url=service.base, headers={"authorization": f"Bearer {key}"}, timeout=30)


@pytest.mark.parametrize(
    "given", [None, "Bearer", "Bearer sk-nobody", "Basic eDp5", "bearer \xff", "Bearer " + "x" * 10_000]
)
def test_nobody_enters_without_a_good_key(guarded: tuple[Service, str, str], given: str | None) -> None:
    headers = {"authorization": given.encode("latin-1")} if given else {}
    for method, path in (
        ("GET", "/v1/caches"),
        ("POST", "/v1/caches/default/entries/search"),
        ("POST", "/v1/caches/default/entries"),
        ("POST", "/v1/caches/default/flush"),
        ("DELETE", "/v1/caches/default"),
    ):
        got = guarded[0].http.request(method, path, headers=headers, json={"prompt": "x", "response": "y"})
        assert_problem(got, Code.UNAUTHENTICATED)
        assert got.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
def test_operations_need_no_key(guarded: tuple[Service, str, str], path: str) -> None:
    assert guarded[0].http.get(path).status_code == 200


def test_the_scheme_is_read_in_any_case(guarded: tuple[Service, str, str]) -> None:
    for scheme in ("bearer", "BEARER"):
        headers = {"authorization": f"{scheme} {guarded[1]}"}
        for method, path in (("GET", "/v1/caches/default"), ("POST", "/v1/caches/default/entries/search")):
            got = guarded[0].http.request(method, path, headers=headers, json={"prompt": "x"})
            assert got.status_code == 200, got.text


def test_another_tenants_data_does_not_exist(north: httpx.Client, south: httpx.Client) -> None:
    mine = new_cache(north)
    entry = mine.store(ASKED, "Forty weeks.")
    assert mine.responses(ASKED) == mine.responses(CLOSE) == ["Forty weeks."]
    theirs = Cache(south, mine.name)
    for method, rest in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/stats"),
        ("POST", "/flush"),
        ("GET", "/entries"),
        ("DELETE", "/entries"),
        ("GET", f"/entries/{entry}"),
        ("DELETE", f"/entries/{entry}"),
        ("POST", "/entries/search"),
        ("POST", "/explain"),
    ):
        got = south.request(method, f"{theirs.path}{rest}", json={"prompt": ASKED, "policy": {}, "tags": ["x"]})
        assert got.status_code in {404, 422}, got.text
        assert "Forty" not in got.text
        if got.status_code == 404:
            assert_problem(got, Code.CACHE_NOT_FOUND)
    assert mine.name not in south.get("/v1/caches").text
    own = Cache(south, "default")
    for method in ("GET", "DELETE"):
        assert_problem(south.request(method, f"{own.entries}/{entry}"), Code.ENTRY_NOT_FOUND)
    assert own.responses(ASKED) == own.responses(CLOSE) == []
    assert mine.responses(ASKED) == ["Forty weeks."]


def test_tenants_may_use_one_name_for_their_caches(north: httpx.Client, south: httpx.Client) -> None:
    one, two = Cache(north, "default"), Cache(south, "default")
    one.store("Who holds the spare key?", "The night desk.")
    two.store("Who holds the spare key?", "The porter.")
    for _ in range(3):
        assert one.responses("Who holds the spare key?") == ["The night desk."]
        assert two.responses("Who holds the spare key?") == ["The porter."]
    assert one.http.post(f"{one.path}/flush").status_code == 204
    assert one.responses("Who holds the spare key?") == []
    assert two.responses("Who holds the spare key?") == ["The porter."]


def test_a_deleted_default_begins_anew_under_keys_too(north: httpx.Client) -> None:
    default = Cache(north, "default")
    default.store(ASKED, "Forty weeks.")
    assert north.delete(default.path).status_code == 204
    assert default.responses(ASKED) == []


def test_a_revoked_key_opens_nothing_from_the_moment_the_command_ends(guarded: tuple[Service, str, str]) -> None:
    service, *_ = guarded
    url = service.runtime.db.url
    key = keys(url, "create", "--tenant", "north")
    number, tenant, hint, *_, state = keys(url, "list").splitlines()[-1].split("\t")
    assert (tenant, hint, state) == ("north", f"{key[:8]}…", "good")
    with client(service, key) as http:
        assert Cache(http, "default").look(ASKED)["reason"]
        keys_process(url, "revoke", number)
        assert_problem(http.post("/v1/caches/default/entries/search", json={"prompt": ASKED}), Code.UNAUTHENTICATED)
    assert keys(url, "list").splitlines()[-1].split("\t")[-1].startswith("revoked")
    again = CliRunner().invoke(app, ["keys", "revoke", number, "--database-url", url])
    assert again.exit_code == 1
    assert "pgsemcache keys list" in str(again.exception)


def test_a_key_is_kept_by_its_hash_only(guarded: tuple[Service, str, str]) -> None:
    import psycopg

    service, north, _ = guarded
    with psycopg.connect(service.runtime.db.url) as connection:
        (shown,) = connection.execute("select string_agg(k::text, ' ') from semcache.api_key k").fetchone() or ("",)
    assert north[:8] in shown
    assert north not in shown
    assert north[8:] not in shown


def test_a_key_may_come_from_a_file_and_a_second_time_changes_nothing(database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("a-key-of-an-operator\n")
    for _ in range(2):
        assert keys(database_url, "create", "--tenant", "north", "--key-file", str(file)) == ""
    assert len(keys(database_url, "list").splitlines()) == 1
    with (
        running_service(Settings(database_url=database_url)) as service,
        client(service, file.read_text().strip()) as http,
    ):
        assert http.get("/v1/caches/default").status_code == 200
    taken = CliRunner().invoke(
        app, ["keys", "create", "--tenant", "south", "--key-file", str(file), "--database-url", database_url]
    )
    assert isinstance(taken.exception, SemcacheError)
    assert taken.exception.code is Code.KEY_EXISTS


@pytest.mark.parametrize("text", ["", "too short", "x" * 257, "with a space in its middle"])
def test_a_file_that_holds_no_key_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(text)
    done = CliRunner().invoke(app, ["keys", "create", "--tenant", "north", "--key-file", str(tmp_path / "key")])
    assert "--key-file: must hold" in str(done.exception)
