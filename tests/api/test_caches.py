"""Caches: made, seen, changed, listed, flushed, deleted."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from calls import Cache, assert_problem, new_cache, send

from service.errors import Code
from service.policy.cache_policy import DEFAULT_THRESHOLD

DEFAULTS = {
    "decision": "threshold",
    "similarityThreshold": DEFAULT_THRESHOLD,
    "guards": True,
    "neighbours": 4,
    "mode": "semantic",
    "ttlMillis": None,
    "maxTtlMillis": None,
    "sampled": "semantic",
    "share": "tenant",
    "clientAnswers": True,
    "trustImageUrls": False,
    "shadow": False,
    "staleIfErrorMillis": 0,
    "index": "ivfflat",
}


def change(cache: Cache, **policy: Any) -> dict[str, Any]:
    changed = send(cache.http, "PATCH", cache.path, {"policy": policy})
    assert changed.status_code == 200, changed.text
    return dict(changed.json()["policy"])


def test_a_cache_shows_its_policy_whole_with_defaults(http: httpx.Client) -> None:
    cache = new_cache(http, similarityThreshold=0.9)
    got = http.get(cache.path)
    assert got.status_code == 200
    assert got.json()["cacheId"] == got.json()["name"] == cache.name
    assert got.json()["policy"].items() >= (DEFAULTS | {"similarityThreshold": 0.9}).items()


def test_a_change_keeps_the_other_keys_and_null_goes_back_to_the_default(http: httpx.Client) -> None:
    cache = new_cache(http, similarityThreshold=0.9, mode="exact")
    assert change(cache, ttlMillis=5_000).items() >= {
        "similarityThreshold": 0.9, "mode": "exact", "ttlMillis": 5_000
    }.items()  # fmt: skip
    assert change(cache, similarityThreshold=None, ttlMillis=None).items() >= (DEFAULTS | {"mode": "exact"}).items()
    assert http.get(cache.path).json()["policy"]["similarityThreshold"] == DEFAULT_THRESHOLD


@pytest.mark.parametrize("threshold", [0, 1, 0.0, 1.0, 0.5])
def test_both_ends_of_the_threshold_are_values(cache: Cache, threshold: float) -> None:
    assert change(cache, similarityThreshold=threshold)["similarityThreshold"] == threshold


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"thresholdd": 0.9}, ["policy.thresholdd", "similarityThreshold"]),
        ({"thresholdd": None}, ["policy.thresholdd"]),
        ({"similarity_threshold": 0.9}, ["policy.similarity_threshold", "no such policy key"]),
        ({"similarityThreshold": 1.2}, ["policy.similarityThreshold", "from 0 to 1"]),
        ({"similarityThreshold": -0.1}, ["policy.similarityThreshold", "from 0 to 1"]),
        ({"similarityThreshold": "high"}, ["policy.similarityThreshold", "from 0 to 1"]),
        ({"similarityThreshold": True}, ["policy.similarityThreshold", "from 0 to 1"]),
        ({"ttlMillis": 0}, ["policy.ttlMillis", "expired already"]),
        ({"ttlMillis": True}, ["policy.ttlMillis"]),
        ({"maxTtlMillis": 31_556_952_001}, ["policy.maxTtlMillis", "31556952000"]),
        ({"neighbours": "4"}, ["policy.neighbours"]),
        ({"neighbours": 0}, ["policy.neighbours"]),
        ({"mode": "loose"}, ["policy.mode", "'exact'"]),
    ],
)
def test_a_bad_policy_is_refused_by_name_and_changes_nothing(
    cache: Cache, policy: dict[str, Any], words: list[str]
) -> None:
    before = cache.http.get(cache.path).json()
    assert_problem(send(cache.http, "PATCH", cache.path, {"policy": policy}), Code.INVALID_DATA, *words)
    made = send(cache.http, "POST", "/v1/caches", {"name": f"{cache.name}-b", "policy": policy})
    assert_problem(made, Code.INVALID_DATA, *words)
    assert cache.http.get(cache.path).json() == before
    assert_problem(cache.http.get(f"{cache.path}-b"), Code.CACHE_NOT_FOUND)


def test_a_name_is_taken_once_and_free_again_after_the_delete(cache: Cache) -> None:
    again = {"name": cache.name}
    assert_problem(cache.http.post("/v1/caches", json=again), Code.CACHE_EXISTS)
    cache.store("What is a gnomon?", "The part of a sundial that casts the shadow.")
    assert cache.http.delete(cache.path).status_code == 204
    assert_problem(cache.http.get(cache.path), Code.CACHE_NOT_FOUND)
    assert_problem(cache.http.delete(cache.path), Code.CACHE_NOT_FOUND)
    assert_problem(cache.post("entries/search", {"prompt": "What is a gnomon?"}), Code.CACHE_NOT_FOUND)
    assert cache.http.post("/v1/caches", json=again).status_code == 201
    assert cache.responses("What is a gnomon?") == []
    assert cache.listed() == []


@pytest.mark.parametrize("name", ["", "a b", ".", "..", "é", "x" * 129, "a/b", "a\x00", "\ud800"])
def test_a_name_has_plain_characters(http: httpx.Client, name: str) -> None:
    assert_problem(send(http, "POST", "/v1/caches", {"name": name}), Code.INVALID_DATA, "name")


@pytest.mark.parametrize("name", ["nobody", "%00", "%ff%fe", "x" * 2000])
def test_a_name_that_no_cache_has_is_not_found(http: httpx.Client, name: str) -> None:
    assert_problem(http.get(f"/v1/caches/{name}/stats"), Code.CACHE_NOT_FOUND)


def test_the_list_shows_every_cache_once_page_by_page(http: httpx.Client) -> None:
    mine = {new_cache(http).name for _ in range(5)}
    seen: list[str] = []
    cursor = None
    while True:
        page = http.get("/v1/caches", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [row["name"] for row in page["data"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
        assert len(page["data"]) == 2
    assert seen == sorted(set(seen))
    assert mine | {"default"} <= set(seen)


def test_a_cursor_that_no_name_can_be_is_no_fault(http: httpx.Client) -> None:
    assert http.get("/v1/caches", params={"cursor": "\x00"}).status_code == 200


def test_the_cache_named_default_exists_and_begins_anew_when_deleted(http: httpx.Client) -> None:
    default = Cache(http, "default")
    change(default, mode="exact")
    default.store("What is a plumb line?", "A weight on a string.")
    assert http.delete(default.path).status_code == 204
    assert http.get(default.path).json()["policy"].items() >= DEFAULTS.items()
    assert default.responses("What is a plumb line?") == []


def test_a_flush_leaves_nothing_of_what_was_there(cache: Cache) -> None:
    entry = cache.store("How deep is the quarry?", "Forty metres.")
    assert cache.responses("How deep is the quarry?") == ["Forty metres."]
    assert cache.http.post(f"{cache.path}/flush").status_code == 204
    assert cache.responses("How deep is the quarry?") == []
    assert cache.responses("How deep is the quarry then?", similarityThreshold=0) == []
    assert cache.listed() == []
    path = f"{cache.entries}/{entry}"
    assert_problem(cache.http.get(path), Code.ENTRY_NOT_FOUND)
    assert_problem(cache.http.patch(path, json={"pinned": True}), Code.ENTRY_NOT_FOUND)
    assert_problem(cache.http.delete(path), Code.ENTRY_NOT_FOUND)
    assert_problem(cache.post("feedback", {"entryId": entry, "verdict": "wrong"}), Code.ENTRY_NOT_FOUND)
    cache.store("How deep is the quarry?", "Forty-one metres.")
    assert cache.responses("How deep is the quarry?") == ["Forty-one metres."]


def test_mode_narrows_what_is_tried(http: httpx.Client) -> None:
    cache = new_cache(http)
    near = "How can I rewire a lamp?"
    cache.store("How do I rewire a lamp?", "Unplug it first.")
    assert cache.responses(near) == ["Unplug it first."]
    change(cache, mode="exact")
    missed = cache.look(near)
    assert (missed["data"], missed["reason"]) == ([], "exact_only")
    assert cache.responses("How do I rewire a lamp?") == ["Unplug it first."]
    change(cache, mode="off")
    off = cache.look("How do I rewire a lamp?")
    assert (off["data"], off["reason"]) == ([], "mode_off")


def test_a_cache_does_not_see_another_ones_entries(http: httpx.Client) -> None:
    mine, other = new_cache(http), new_cache(http)
    entry = mine.store("Who keeps the lighthouse?", "Nobody, since 1988.")
    assert other.responses("Who keeps the lighthouse?") == []
    assert other.responses("Who keeps the old lighthouse?", similarityThreshold=0) == []
    path = f"{other.entries}/{entry}"
    assert_problem(http.get(path), Code.ENTRY_NOT_FOUND)
    assert_problem(http.patch(path, json={"pinned": True}), Code.ENTRY_NOT_FOUND)
    assert_problem(http.delete(path), Code.ENTRY_NOT_FOUND)
    assert mine.responses("Who keeps the lighthouse?") == ["Nobody, since 1988."]
