"""Every limit on input is a setting, holds, and is named by its error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from calls import Cache, assert_problem, new_cache
from running import Service, running_service

from service.errors import Code
from service.settings import Settings

JSON = {"content-type": "application/json"}
STORE = {"prompt": "x", "response": "y"}
ASK = {"prompt": "x"}
THREE = {"a": "", "b": "", "c": ""}


@pytest.fixture(scope="module")
def tight(new_database: Callable[[], AbstractContextManager[str]]) -> Iterator[Service]:
    """A service whose every limit is low."""
    with new_database() as url:
        settings = Settings(
            database_url=url,
            max_body_bytes=4096,
            max_json_depth=6,
            max_prompt_chars=100,
            max_response_chars=120,
            max_batch=3,
            max_page=4,
            max_attributes=2,
            max_tags=2,
        )
        with running_service(settings) as running:
            yield running


def deep(levels: int) -> Any:
    return {"a": deep(levels - 1)} if levels else 1


FITS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "entries", STORE | {"prompt": "x" * 100, "response": "x" * 120}),
    ("POST", "entries", STORE | {"attributes": {"a": "", "b": ""}, "tags": ["a", "b"]}),
    ("POST", "entries/search", {"prompt": "é" * 100, "scope": {"sampling": deep(4)}}),
    ("POST", "entries/batch", {"entries": [STORE] * 3}),
    ("POST", "entries/batch-search", {"searches": [ASK] * 3}),
    ("DELETE", "entries", {"attributes": {"a": "b"}, "tags": ["a", "b"]}),
    ("POST", "explain", {"prompt": "x" * 100}),
]
EXCEEDS: list[tuple[str, str, dict[str, Any], str]] = [
    ("POST", "entries", STORE | {"prompt": "x" * 101}, "SEMCACHE_MAX_PROMPT_CHARS"),
    ("POST", "entries", STORE | {"response": "x" * 121}, "SEMCACHE_MAX_RESPONSE_CHARS"),
    ("POST", "entries", STORE | {"attributes": THREE}, "SEMCACHE_MAX_ATTRIBUTES"),
    ("POST", "entries", STORE | {"tags": ["a", "b", "c"]}, "SEMCACHE_MAX_TAGS"),
    ("POST", "entries", STORE | {"scope": {"sampling": deep(6)}}, "SEMCACHE_MAX_JSON_DEPTH"),
    ("POST", "entries/search", {"prompt": "é" * 101}, "SEMCACHE_MAX_PROMPT_CHARS"),
    ("POST", "entries/search", ASK | {"attributes": THREE}, "SEMCACHE_MAX_ATTRIBUTES"),
    ("POST", "entries/search", ASK | {"scope": {"sampling": deep(6)}}, "SEMCACHE_MAX_JSON_DEPTH"),
    ("POST", "entries/batch", {"entries": [STORE] * 4}, "SEMCACHE_MAX_BATCH"),
    ("POST", "entries/batch-search", {"searches": [ASK] * 4}, "SEMCACHE_MAX_BATCH"),
    ("DELETE", "entries", {"attributes": THREE}, "SEMCACHE_MAX_ATTRIBUTES"),
    ("DELETE", "entries", {"tags": ["a", "b", "c"]}, "SEMCACHE_MAX_TAGS"),
    ("POST", "explain", {"prompt": "x" * 101}, "SEMCACHE_MAX_PROMPT_CHARS"),
]


@pytest.mark.parametrize(("method", "rest", "body"), FITS)
def test_what_reaches_a_limit_fits(tight: Service, method: str, rest: str, body: dict[str, Any]) -> None:
    got = new_cache(tight.http).send(method, rest, body)
    assert got.is_success, got.text
    assert "SEMCACHE" not in got.text


@pytest.mark.parametrize(("method", "rest", "body", "setting"), EXCEEDS)
def test_what_exceeds_a_limit_is_refused_by_its_name(
    tight: Service, method: str, rest: str, body: dict[str, Any], setting: str
) -> None:
    assert_problem(new_cache(tight.http).send(method, rest, body), Code.INVALID_DATA, setting)


def test_a_change_is_limited_as_a_store_is(tight: Service) -> None:
    cache = new_cache(tight.http)
    entry = cache.store("x", "y")
    got = cache.send("PATCH", f"entries/{entry}", {"tags": ["a", "b", "c"]})
    assert_problem(got, Code.INVALID_DATA, "SEMCACHE_MAX_TAGS")


def test_a_page_is_limited(tight: Service) -> None:
    cache = new_cache(tight.http)
    for path in (cache.entries, "/v1/caches"):
        assert tight.http.get(path, params={"limit": 4}).is_success
        for limit in (5, 10**30):
            assert_problem(tight.http.get(path, params={"limit": limit}), Code.INVALID_DATA, "SEMCACHE_MAX_PAGE")


def test_a_listing_asks_for_no_more_than_a_page_by_default(tight: Service) -> None:
    cache = new_cache(tight.http)
    for path in (cache.entries, "/v1/caches"):
        assert tight.http.get(path).is_success


def test_an_item_over_a_limit_fails_alone(tight: Service) -> None:
    cache = new_cache(tight.http)
    items = cache.post("entries/batch", {"entries": [STORE, STORE | {"prompt": "x" * 101}]}).json()["data"]
    assert [item["status"] for item in items] == [201, 422]
    assert "SEMCACHE_MAX_PROMPT_CHARS" in items[1]["error"]["detail"]


@pytest.mark.parametrize("rest", ["entries", "entries/search", "feedback"])
@pytest.mark.parametrize("declared", [True, False])
def test_a_body_over_the_limit_is_refused_however_it_comes(tight: Service, rest: str, declared: bool) -> None:
    cache = new_cache(tight.http)
    body = json.dumps({"prompt": "x" * 5000}).encode()
    content: Any = body if declared else (body[i : i + 500] for i in range(0, len(body), 500))
    got = cache.http.post(f"{cache.path}/{rest}", content=content, headers=JSON)
    assert_problem(got, Code.BODY_TOO_LARGE, "4096", "SEMCACHE_MAX_BODY_BYTES")
    assert cache.http.get(cache.path).is_success


def test_ten_megabytes_are_a_clear_answer_and_the_service_goes_on(cache: Cache) -> None:
    got = cache.post("entries", STORE | {"response": "x" * 10_000_000})
    assert_problem(got, Code.INVALID_DATA, "SEMCACHE_MAX_RESPONSE_CHARS")
    got = cache.post("entries", STORE | {"prompt": "é" * 10_000_000})
    assert_problem(got, Code.BODY_TOO_LARGE, "SEMCACHE_MAX_BODY_BYTES")
    assert cache.post("entries", STORE).status_code == 201
