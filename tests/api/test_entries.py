"""Entries: read, listed, changed, deleted, one by one and by filter."""

from __future__ import annotations

import base64
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from calls import Cache, assert_problem, new_cache
from running import Service

from service.errors import Code

ASKED, CLOSE = "How do I prune a pear tree?", "How can I prune a pear tree?"
NOBODY = "0" * 32


def patch(cache: Cache, entry: str, **change: Any) -> dict[str, Any]:
    got = cache.send("PATCH", f"entries/{entry}", change)
    assert got.status_code == 200, got.text
    return dict(got.json())


def age(service: Service, entry: str, seconds: float) -> None:
    """Move an entry's times into the past, and forget what is remembered of it."""
    import psycopg

    shift = timedelta(seconds=seconds)
    with psycopg.connect(service.runtime.db.url, autocommit=True) as connection:
        connection.execute(
            "update semcache.entry set created_at = created_at - %s, expires_at = expires_at - %s where entry_id = %s",
            (shift, shift, entry),
        )
        connection.execute("select semcache.record_invalidation(null, null)")
    service.runtime.memory.forget(None, None)


def test_an_entry_is_shown_as_it_was_stored(cache: Cache) -> None:
    entry = cache.store(ASKED, "In winter.", attributes={"garden": "red"}, tags=["b", "a"], scope={"model": "m-1"})
    shown = cache.read(entry)
    assert shown.pop("createdAt").endswith("Z")
    assert shown.pop("scope").keys() == {"model", "sampling", "parts"}
    assert shown == {
        "id": entry,
        "prompt": ASKED,
        "response": "In winter.",
        "model": "m-1",
        "attributes": {"garden": "red"},
        "tags": ["b", "a"],
        "provenance": "client",
        "aliasOf": None,
        "pinned": False,
        "quarantined": False,
        "expiresAt": None,
        "promptTokens": None,
        "completionTokens": None,
        "hits": 0,
        "lastHitAt": None,
    }
    assert cache.http.get(
        f"{cache.entries}/{entry[:8]}-{entry[8:12]}-{entry[12:16]}-{entry[16:20]}-{entry[20:]}"
    ).json()


def test_an_entry_by_itself_shows_its_scope(cache: Cache) -> None:
    scope = {"model": "m-1", "revision": "r2", "system": "Be brief.", "sampling": {"temperature": 0, "stop": "\x00"}}
    shown = cache.read(cache.store(ASKED, "In winter.", scope=scope))["scope"]
    assert shown["model"] == {"name": "m-1", "revision": "r2"}
    assert shown["sampling"] == {"temperature": 0, "stop": ["\x00"]}
    plain = cache.read(cache.store(ASKED, "In winter.", scope=scope | {"system": "Be long."}))["scope"]
    assert {name for name in shown["parts"] if shown["parts"][name] != plain["parts"].get(name)} == {"system"}


def test_hits_are_counted_exactly_and_for_paraphrases(cache: Cache) -> None:
    entry = cache.store(ASKED, "In winter.")
    for prompt in (ASKED, ASKED, CLOSE, "Who wrote this song?"):
        cache.look(prompt)
    stats = cache.http.get(f"{cache.path}/stats").json()
    assert cache.read(entry)["hits"] == 3
    assert cache.read(entry)["lastHitAt"] is not None
    counted = {"lookups": 4, "hits": 3, "exactHits": 2, "semanticHits": 1, "misses": 1, "bypasses": 0, "errors": 0}
    assert {name: stats[name] for name in counted} == counted
    assert stats["entries"] == 1
    assert stats["hitRate"] == 0.75
    assert stats["missReasons"] == {"below_threshold": 1}
    assert 0 < stats["latencyP50Ms"] <= stats["latencyP99Ms"]
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    since = cache.http.get(f"{cache.path}/stats", params={"since": later}).json()
    assert (since["lookups"], since["hitRate"], since["entries"]) == (0, None, 1)


@pytest.mark.parametrize("since", ["yesterday", "2026-01-01", "2026-01-01T00:00:00", "1767225600"])
def test_a_time_needs_its_zone(cache: Cache, since: str) -> None:
    assert_problem(cache.http.get(f"{cache.path}/stats", params={"since": since}), Code.INVALID_DATA, "since")
    assert_problem(cache.send("DELETE", "entries", {"olderThan": since}), Code.INVALID_DATA, "olderThan")


def test_a_change_touches_what_it_names_only(cache: Cache) -> None:
    entry = cache.store(ASKED, "In winter.", tags=["fruit"], ttlMillis=50_000)
    before = cache.read(entry)
    assert patch(cache, entry) == before
    assert patch(cache, entry, pinned=True) == before | {"pinned": True}
    assert patch(cache, entry, tags=["fruit", "spring"])["tags"] == ["fruit", "spring"]
    assert patch(cache, entry, tags=[])["tags"] == []
    assert patch(cache, entry, ttlMillis=None)["expiresAt"] is None
    assert cache.look(ASKED)["data"][0]["ttlMillis"] is None
    assert patch(cache, entry, ttlMillis=100_000)["expiresAt"] > before["expiresAt"]
    assert 50_000 < cache.look(ASKED)["data"][0]["ttlMillis"] <= 100_000
    assert cache.read(entry)["pinned"] is True


def test_a_quarantined_entry_is_shown_but_not_served_until_it_is_let_out(cache: Cache) -> None:
    entry = cache.store(ASKED, "In winter.")
    assert cache.responses(ASKED) == ["In winter."]
    assert patch(cache, entry, quarantined=True)["quarantined"] is True
    assert cache.responses(ASKED) == cache.responses(CLOSE) == []
    assert [row["quarantined"] for row in cache.listed()] == [True]
    (near,) = cache.post("explain", {"prompt": CLOSE}).json()["neighbours"]
    assert near["obstacles"] == ["quarantined"]
    patch(cache, entry, quarantined=False)
    assert cache.responses(ASKED) == cache.responses(CLOSE) == ["In winter."]


@pytest.mark.parametrize(("verdict", "obstacle"), [("wrong", "quarantined"), ("stale", "expired")])
@pytest.mark.parametrize("prompt", [None, CLOSE])
def test_a_bad_verdict_stops_an_answer_at_once(cache: Cache, verdict: str, obstacle: str, prompt: str | None) -> None:
    entry = cache.store(ASKED, "In winter.")
    assert cache.responses(ASKED) == ["In winter."]
    told = cache.post("feedback", {"entryId": entry, "verdict": verdict} | ({"prompt": prompt} if prompt else {}))
    assert (told.status_code, told.content) == (202, b"")
    assert cache.responses(ASKED) == cache.responses(CLOSE) == []
    (near,) = cache.post("explain", {"prompt": CLOSE}).json()["neighbours"]
    assert near["obstacles"] == [obstacle]
    cache.store(ASKED, "In spring.")
    assert cache.responses(ASKED) == cache.responses(CLOSE) == ["In spring."]


def test_a_good_verdict_changes_nothing_that_is_served(cache: Cache) -> None:
    entry = cache.store(ASKED, "In winter.")
    assert cache.post("feedback", {"entryId": entry, "verdict": "correct", "prompt": CLOSE}).status_code == 202
    assert cache.responses(ASKED) == ["In winter."]


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        ({"entryId": NOBODY, "verdict": "wrong"}, Code.ENTRY_NOT_FOUND, "entry"),
        ({"entryId": NOBODY, "verdict": "wrong", "prompt": ASKED}, Code.ENTRY_NOT_FOUND, "entry"),
        ({"entryId": "\x00", "verdict": "wrong"}, Code.ENTRY_NOT_FOUND, "32 hexadecimal digits"),
        ({"entryId": NOBODY, "verdict": "meh"}, Code.INVALID_DATA, "verdict"),
        ({"verdict": "wrong"}, Code.INVALID_DATA, "entryId"),
        ({"entryId": NOBODY, "verdict": "wrong", "prompt": ""}, Code.INVALID_DATA, "prompt"),
    ],
)
def test_feedback_on_nothing_is_refused(cache: Cache, body: dict[str, Any], code: Code, word: str) -> None:
    assert_problem(cache.post("feedback", body), code, word)


def test_a_deleted_entry_is_gone_everywhere_at_once(cache: Cache) -> None:
    entry = cache.store(ASKED, "In winter.")
    assert cache.responses(ASKED) == ["In winter."]
    assert cache.http.delete(f"{cache.entries}/{entry}").status_code == 204
    assert cache.responses(ASKED) == cache.responses(CLOSE) == cache.listed() == []
    assert_problem(cache.http.get(f"{cache.entries}/{entry}"), Code.ENTRY_NOT_FOUND)
    assert_problem(cache.http.delete(f"{cache.entries}/{entry}"), Code.ENTRY_NOT_FOUND)


@pytest.mark.parametrize("entry", [NOBODY, "nothing", "%00", "1", "x" * 500])
def test_an_id_that_no_entry_has_is_not_found(cache: Cache, entry: str) -> None:
    path = f"{cache.entries}/{entry}"
    assert_problem(cache.http.get(path), Code.ENTRY_NOT_FOUND)
    assert_problem(cache.http.delete(path), Code.ENTRY_NOT_FOUND)
    assert_problem(cache.http.patch(path, json={}), Code.ENTRY_NOT_FOUND)


def garden(cache: Cache) -> None:
    for number, room in enumerate(("east", "east", "east", "west", "west")):
        tags = [f"n{number}", "odd" if number % 2 else "even"]
        scope = {"model": "big" if number < 2 else "small"}
        cache.store(
            f"Rule {number}?", f"rule {number}", attributes={"room": room, "n": str(number)}, tags=tags, scope=scope
        )


@pytest.mark.parametrize(
    ("chosen", "gone"),
    [
        ({"attributes": {"room": "east"}}, {0, 1, 2}),
        ({"attributes": {"room": "east", "n": "1"}}, {1}),
        ({"tags": ["odd"]}, {1, 3}),
        ({"tags": ["n0", "n4", "nothing"]}, {0, 4}),
        ({"model": "big"}, {0, 1}),
        ({"model": "big", "tags": ["odd"]}, {1}),
        ({"model": "no\x00body"}, set()),
        ({"olderThan": "9999-01-01T00:00:00Z"}, {0, 1, 2, 3, 4}),
        ({"olderThan": "2001-01-01T00:00:00+02:00"}, set()),
        ({"attributes": {"room": "cellar"}}, set()),
    ],
)
def test_a_filter_counts_truly_and_deletes_just_those(cache: Cache, chosen: dict[str, Any], gone: set[int]) -> None:
    garden(cache)
    everything = {f"rule {n}" for n in range(5)}
    dry = cache.send("DELETE", "entries", chosen | {"dryRun": True})
    assert dry.json() == {"deletedEntriesCount": len(gone)}
    assert {row["response"] for row in cache.listed()} == everything
    done = cache.send("DELETE", "entries", chosen | {"dryRun": False})
    assert done.json() == {"deletedEntriesCount": len(gone)}
    assert {row["response"] for row in cache.listed()} == everything - {f"rule {n}" for n in gone}
    assert cache.send("DELETE", "entries", chosen).json() == {"deletedEntriesCount": 0}


def test_what_a_filter_deleted_is_served_no_more(cache: Cache) -> None:
    cache.store(ASKED, "In winter.", tags=["fruit"])
    assert cache.responses(ASKED) == ["In winter."]
    cache.send("DELETE", "entries", {"tags": ["fruit"]})
    assert cache.responses(ASKED) == cache.responses(CLOSE) == []


@pytest.mark.parametrize(
    "body", [{}, {"attributes": {}}, {"tags": []}, {"dryRun": True}, {"attributes": {}, "tags": []}]
)
def test_an_empty_filter_is_refused(cache: Cache, body: dict[str, Any]) -> None:
    cache.store(ASKED, "In winter.")
    assert_problem(cache.send("DELETE", "entries", body), Code.EMPTY_FILTER)
    assert cache.responses(ASKED) == ["In winter."]


@pytest.mark.parametrize("body", [{"dryRun": "no", "tags": ["a"]}, {"dryRun": 0, "tags": ["a"]}, {"model": ""}])
def test_a_filter_is_not_guessed_at(cache: Cache, body: dict[str, Any]) -> None:
    assert_problem(cache.send("DELETE", "entries", body), Code.INVALID_DATA)


def test_the_listing_gives_every_entry_once_while_others_come_in(shared_service: Service, cache: Cache) -> None:
    there = [cache.store(f"Which seed goes in row {n}?", str(n)) for n in range(23)]
    stop = threading.Event()

    def keep_storing() -> None:
        number = 0
        while not stop.is_set():
            cache.store(f"Late seed {number}?", "late")
            number += 1

    writer = threading.Thread(target=keep_storing)
    writer.start()
    try:
        rows: list[str] = []
        cursor = None
        for _ in range(9):
            page = cache.http.get(cache.entries, params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
            rows += [row["id"] for row in page["data"]]
            cursor = page["nextCursor"]
            if cursor is None:
                break
    finally:
        stop.set()
        writer.join()
    assert rows[: len(there)] == there
    assert len(rows) == len(set(rows))
    everything = cache.listed(limit=7)
    assert len(everything) == len({row["id"] for row in everything}) > len(there)


def test_the_newest_come_first_where_that_is_asked(cache: Cache) -> None:
    stored = [cache.store(f"Question {n}?", "Answer.") for n in range(5)]
    pages, asked = [], {"order": "newest", "limit": 2}
    while True:
        page = cache.http.get(cache.entries, params=asked).json()
        pages.append([row["id"] for row in page["data"]])
        if page["nextCursor"] is None:
            break
        asked["cursor"] = page["nextCursor"]
    assert pages == [stored[4:2:-1], stored[2:0:-1], stored[:1]]
    got = cache.http.get(cache.entries, params={"order": "best"})
    assert_problem(got, Code.INVALID_DATA, "order")


def test_pinned_and_quarantined_ones_are_listed_by_themselves(cache: Cache) -> None:
    stored = [cache.store(f"Question {n}?", "Answer.") for n in range(6)]
    for entry_id in stored[1:4]:
        patch(cache, entry_id, pinned=True)
    for entry_id in stored[3:5]:
        patch(cache, entry_id, quarantined=True)
    listed = {
        state: [row["id"] for row in cache.http.get(cache.entries, params={"state": state}).json()["data"]]
        for state in ("pinned", "quarantined")
    }
    assert listed == {"pinned": stored[3:0:-1], "quarantined": stored[4:2:-1]}
    page = cache.http.get(cache.entries, params={"state": "pinned", "limit": 2}).json()
    rest = cache.http.get(cache.entries, params={"state": "pinned", "limit": 2, "cursor": page["nextCursor"]}).json()
    assert [row["id"] for row in page["data"] + rest["data"]] == listed["pinned"]
    assert_problem(cache.http.get(cache.entries, params={"state": "best"}), Code.INVALID_DATA, "state")


@pytest.mark.parametrize(("entries", "pages"), [(0, 1), (3, 1), (4, 2), (6, 2)])
def test_the_last_page_says_that_it_is_the_last(cache: Cache, entries: int, pages: int) -> None:
    for number in range(entries):
        cache.store(f"Which seed goes in row {number}?", str(number))
    seen, cursor = 0, None
    while True:
        page = cache.http.get(cache.entries, params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
        seen += 1
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == pages


def forged(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "\x00",
        "é",
        forged(""),
        forged("now " + NOBODY),
        forged(f"2026-01-01T00:00:00+00:00 {NOBODY}x"),
        forged("a b c"),
    ],
)
def test_a_cursor_that_is_none_of_ours_is_refused(cache: Cache, cursor: str) -> None:
    assert_problem(cache.http.get(cache.entries, params={"cursor": cursor}), Code.INVALID_DATA, "cursor")


def test_a_forged_cursor_shows_nothing_that_is_not_there_anyway(cache: Cache) -> None:
    other = new_cache(cache.http)
    other.store(ASKED, "theirs")
    mine = cache.store(ASKED, "mine")
    page = cache.http.get(cache.entries, params={"cursor": forged(f"0001-01-01T00:00:00+23:59 {NOBODY}")}).json()
    assert [row["id"] for row in page["data"]] == [mine]


def test_an_entry_ends_with_its_lifetime_however_often_it_was_hit(shared_service: Service, cache: Cache) -> None:
    entry = cache.store(ASKED, "In winter.", ttlMillis=60_000)
    for _ in range(3):
        assert cache.responses(ASKED) == ["In winter."]
    age(shared_service, entry, 59)
    assert cache.look(ASKED)["data"][0]["ttlMillis"] <= 1_000
    assert cache.look(ASKED)["data"][0]["ageMillis"] >= 59_000
    age(shared_service, entry, 2)
    assert cache.responses(ASKED) == cache.responses(CLOSE) == cache.listed() == []
    assert cache.read(entry)["expiresAt"] is not None
    assert cache.http.get(f"{cache.path}/stats").json()["entries"] == 0
    assert cache.send("DELETE", "entries", {"olderThan": "9999-01-01T00:00:00Z"}).json() == {"deletedEntriesCount": 0}


def test_memory_ends_with_the_lifetime_too(cache: Cache) -> None:
    cache.store(ASKED, "In winter.", ttlMillis=150)
    served = 0
    while cache.responses(ASKED):
        served += 1
        assert served < 5_000, "an entry of 150 ms was served for ever"


def test_expired_neighbours_do_not_hide_a_live_one(shared_service: Service, cache: Cache) -> None:
    for number in range(12):
        age(shared_service, cache.store(CLOSE, f"expired {number}", attributes={"n": str(number)}, ttlMillis=1), 1)
    cache.store(ASKED, "In winter.")
    assert cache.responses(CLOSE) == ["In winter."]


def test_the_policy_bounds_the_lifetime(cache: Cache) -> None:
    bounded = new_cache(cache.http, ttlMillis=60_000, maxTtlMillis=90_000)
    bounded.store(ASKED, "by default")
    assert 50_000 < bounded.look(ASKED)["data"][0]["ttlMillis"] <= 60_000
    bounded.store(ASKED, "too long", ttlMillis=1_000_000)
    assert 80_000 < bounded.look(ASKED)["data"][0]["ttlMillis"] <= 90_000
    entry = bounded.store(ASKED, "short", ttlMillis=10_000)
    assert bounded.look(ASKED)["data"][0]["ttlMillis"] <= 10_000
    for changed in (1_000_000, None):
        patch(bounded, entry, ttlMillis=changed)
        assert 80_000 < bounded.look(ASKED)["data"][0]["ttlMillis"] <= 90_000


@pytest.mark.parametrize("bad", [0, -1, 31_556_952_001, True, 1.5, "1000", 10**30])
def test_a_lifetime_that_is_none_is_refused(cache: Cache, bad: Any) -> None:
    body = {"prompt": ASKED, "response": "In winter.", "ttlMillis": bad}
    assert_problem(cache.post("entries", body), Code.INVALID_DATA, "ttlMillis: must be 1 to 31556952000 milliseconds")
    entry = cache.store(ASKED, "In winter.")
    assert_problem(cache.send("PATCH", f"entries/{entry}", {"ttlMillis": bad}), Code.INVALID_DATA, "ttlMillis")
    assert cache.read(entry)["expiresAt"] is None
