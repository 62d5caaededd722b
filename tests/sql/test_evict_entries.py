"""What leaves a full cache, by each policy, and what goes and stays with it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from sessions import Session, key

SHARE = """
update entry
set output_id = (select output_id from entry where prompt = 'c')
where prompt = 'a'
returning 1
"""


def evict(worker: Session, cache_id: int, *, limit: int = 100, low: float = 1.0) -> int:
    """Evict until there is no more to evict; in how many batches."""
    batches = 0
    while worker.call("evict_entries", cache_id=cache_id, limit=limit, low=low):
        batches += 1
        assert batches < 100
    return batches


def full(app: Session, names: str, policy: dict[str, Any]) -> int:
    """A cache with this policy and an entry for each name, stored in this order."""
    cache_id = app.cache("full", policy)
    for name in names.split():
        app.store(name, cache_id=cache_id)
    return cache_id


def use(app: Session, cache_id: int, *names: str, at: str | None = None) -> None:
    """A hit for each name."""
    entries = {row["prompt"]: row["entry_id"] for row in app.rows("select prompt, entry_id from semcache.entry")}
    hits = [
        {
            "at": at or app.one("select clock_timestamp()::text"),
            "cache_id": cache_id,
            "entry_id": str(entries[name]),
            "served": True,
            "outcome": "hit",
            "reason": "same_request",
            "latency_ms": 1,
            "tokens_saved": 0,
            "tokens_spent": 0,
        }
        for name in names
    ]
    app.call("record_requests", tenant_id=app.tenant_id, requests=Jsonb(hits))


def kept(worker: Session) -> str:
    return " ".join(row["prompt"] for row in worker.rows("select prompt from semcache.entry order by prompt"))


def sizes(worker: Session, cache_id: int) -> dict[str, Any]:
    worker.rows("select fold_changes()")
    (row,) = worker.rows("select entries, bytes, evicted from cache_size where cache_id = %(id)s", id=cache_id)
    return row


def test_without_pressure_nothing_goes(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c", {"maxEntries": 3})
    assert evict(worker, cache_id) == 0
    assert evict(worker, app.cache_id) == 0
    assert kept(worker) == "a b c"


def test_the_least_used_goes_with_all_that_is_its_own(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c d", {"maxEntries": 3})
    use(app, cache_id, "a", "b", "d", "a")
    assert evict(worker, cache_id) == 2, "one to rank what is new, one to evict"
    assert kept(worker) == "a b d"
    for table in ("output", "embedding", "entry_usage"):
        assert worker.count(table) == 3
    assert sizes(worker, cache_id)["evicted"] == 1
    told = worker.rows("select cache_id, exact_key from semcache.invalidation")
    assert told == [{"cache_id": cache_id, "exact_key": key("c")}], "or memory could hide what is stored anew"


def test_it_goes_down_to_the_low_mark_and_no_further(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c d e f g h i j k", {"maxEntries": 10})
    evict(worker, cache_id, low=0.7)
    assert sizes(worker, cache_id)["entries"] == 7


def test_bytes_are_a_limit_too(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c d", {})
    each = app.one("select max(bytes) from entry_usage")
    assert 1000 < each < 1300, "an answer of 13 bytes takes a kilobyte of rows and indexes"
    app.call("change_policy", tenant_id=app.tenant_id, cache_id=cache_id, policy=Jsonb({"maxBytes": 2 * each}))
    evict(worker, cache_id)
    assert sizes(worker, cache_id)["entries"] == 2
    assert sizes(worker, cache_id)["bytes"] == worker.one("select sum(bytes) from entry_usage")


def test_a_limit_that_nothing_fits_into_keeps_nothing(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b", {"maxBytes": 1})
    evict(worker, cache_id)
    app.store("c", cache_id=cache_id)
    evict(worker, cache_id)
    assert kept(worker) == ""


def test_a_batch_is_bounded(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c d e f", {"maxEntries": 2})
    counts = []
    while worker.call("evict_entries", cache_id=cache_id, limit=2, low=1.0):
        counts.append(len(kept(worker).split()))
    assert counts[-1] == 2
    assert all(before - after <= 2 for before, after in pairwise(counts))


def test_uses_fade_as_the_cache_is_renewed(app: Session, worker: Session) -> None:
    """Used twice long ago is worth less than used once now."""
    cache_id = full(app, "old", {"maxEntries": 2})
    use(app, cache_id, "old", "old")
    worker.rows("select fold_changes()")
    worker.rows("update cache_size set clock = clock + 3 returning 1")
    app.store("new", cache_id=cache_id)
    use(app, cache_id, "new")
    app.store("newest", cache_id=cache_id)
    use(app, cache_id, "newest")
    evict(worker, cache_id)
    assert kept(worker) == "new newest"


def test_the_clock_goes_on_by_what_is_stored_of_what_fits(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b", {"maxEntries": 2})
    worker.rows("select fold_changes()")
    assert worker.one("select clock from cache_size where cache_id = %(id)s", id=cache_id) == pytest.approx(1 / 4)


def test_a_dear_answer_stays_before_a_cheap_one(app: Session, worker: Session) -> None:
    cache_id = app.cache("full", {"maxEntries": 2})
    for name, cost in (("cheap", 10), ("dear", 10_000), ("middling", 500)):
        app.store(name, cache_id=cache_id, cost_ms=str(cost))
    evict(worker, cache_id)
    assert kept(worker) == "dear middling"


def test_a_small_answer_stays_before_a_large_one_of_its_cost(app: Session, worker: Session) -> None:
    cache_id = app.cache("full", {"maxEntries": 2})
    for name, size in (("small", 10), ("large", 100_000), ("middling", 5_000)):
        app.store(name, cache_id=cache_id, cost_ms="100", payload='{"text": "' + "x" * size + '"}')
    evict(worker, cache_id)
    assert kept(worker) == "middling small"


def test_what_comes_back_goes_on_with_its_score(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c", {"maxEntries": 2})
    use(app, cache_id, "b", "b", "c", "c", "a")
    evict(worker, cache_id)
    assert kept(worker) == "b c"
    app.store("a", cache_id=cache_id)
    assert app.count("evicted") == 0
    assert app.rows("select returned from entry_usage where score > 1.4 and hits = 0") == [{"returned": True}]


def test_what_was_evicted_is_forgotten_in_time(app: Session, worker: Session) -> None:
    cache_id = full(app, " ".join(f"n{number:02}" for number in range(20)), {"maxEntries": 2})
    evict(worker, cache_id)
    worker.rows("update cache_size set stored = stored + 9 returning 1")
    app.store("x", cache_id=cache_id)
    evict(worker, cache_id)
    assert worker.count("evicted") == 1


def test_lru_evicts_what_was_used_longest_ago(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c d", {"maxEntries": 2, "eviction": "lru"})
    use(app, cache_id, "b", "b", "b", at="2020-01-01T00:00:00Z")
    use(app, cache_id, "a")
    evict(worker, cache_id)
    assert kept(worker) == "a d"


def test_s3_fifo_lets_in_what_was_used_twice_while_it_was_new(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c d e f", {"maxEntries": 4, "eviction": "s3-fifo"})
    use(app, cache_id, "a", "a", "b")
    evict(worker, cache_id)
    assert kept(worker) == "a d e f"
    app.store("b", cache_id=cache_id)
    app.store("g", cache_id=cache_id)
    evict(worker, cache_id)
    assert kept(worker) == "a b f g", "b came back and began in the main queue"


def test_another_policy_ranks_anew(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c d", {"maxEntries": 3, "eviction": "lru"})
    use(app, cache_id, "a", "b", "a")
    evict(worker, cache_id)
    assert kept(worker) == "a b d"
    app.store("e", cache_id=cache_id)
    use(app, cache_id, "e", "d", "e", at="2020-01-01T00:00:00Z")
    app.call("change_policy", tenant_id=app.tenant_id, cache_id=cache_id, policy=Jsonb({"eviction": "lfu-decay-cost"}))
    use(app, cache_id, "d", "d", at="2020-01-01T00:00:00Z")
    evict(worker, cache_id)
    assert kept(worker) == "a d e"


@pytest.mark.parametrize("eviction", ["lfu-decay-cost", "lru", "s3-fifo"])
def test_what_is_pinned_stays_until_it_is_unpinned(app: Session, worker: Session, eviction: str) -> None:
    cache_id = full(app, "a b c", {"maxEntries": 1, "eviction": eviction})
    pin(app, cache_id, "a", pinned=True)
    pin(app, cache_id, "b", pinned=True)
    assert evict(worker, cache_id) < 5
    assert kept(worker) == "a b"
    pin(app, cache_id, "a", pinned=False)
    evict(worker, cache_id)
    assert kept(worker) == "b"


@pytest.mark.parametrize("eviction", ["lfu-decay-cost", "lru", "s3-fifo"])
def test_a_cache_full_of_pinned_entries_still_evicts_the_others(app: Session, worker: Session, eviction: str) -> None:
    pinned = "abcdefghijkl"
    cache_id = full(app, " ".join(pinned), {"maxEntries": 11, "eviction": eviction})
    for name in pinned:
        pin(app, cache_id, name, pinned=True)
    evict(worker, cache_id)
    app.store("z", cache_id=cache_id)
    evict(worker, cache_id)
    assert kept(worker) == " ".join(pinned)


def pin(app: Session, cache_id: int, name: str, *, pinned: bool) -> None:
    app.call(
        "change_entry",
        tenant_id=app.tenant_id,
        cache_id=cache_id,
        entry_id=app.one("select entry_id from entry where prompt = %(name)s", name=name),
        ttl_ms=None,
        clear_ttl=False,
        tags=None,
        pinned=pinned,
        quarantined=None,
    )


def test_the_dead_go_first(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c d", {"maxEntries": 3})
    use(app, cache_id, "d", "d")
    app.rows("update entry set expires_at = now() where prompt = 'd' returning 1")
    evict(worker, cache_id)
    assert kept(worker) == "a b c"
    assert worker.count("evicted") == 0, "nobody evicted it for want of room"


def test_what_another_transaction_holds_is_not_waited_for(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c", {"maxEntries": 2})
    use(app, cache_id, "b", "c", "c")
    with app.holding():
        app.rows("select from semcache.entry where prompt = 'a' for update")
        evict(worker, cache_id)
        assert kept(worker) == "a c"
    app.store("d", cache_id=cache_id)
    evict(worker, cache_id)
    assert kept(worker) == "c d"


def test_an_output_goes_with_its_last_entry(app: Session, worker: Session) -> None:
    cache_id = full(app, "a b c", {"maxEntries": 2})
    app.rows(SHARE)
    use(app, cache_id, "b", "b", "c")
    evict(worker, cache_id)
    assert kept(worker) == "b c"
    assert app.one("select count(*) from entry join output using (output_id)") == 2


def test_a_tenant_over_its_quota_gives_way_in_its_largest_cache(
    app: Session, worker: Session, session: Callable[..., Session], database_url: str
) -> None:
    other = session("other")
    for tenant in (app, other):
        large, small = tenant.cache("large"), tenant.cache("small")
        for number in range(8):
            tenant.store(str(number), cache_id=large)
        for number in range(2):
            tenant.store(f"s{number}", cache_id=small)
    set_quota(database_url, "acme", 5)
    worker.rows("select fold_changes()")
    over = [row["cache_id"] for row in worker.rows("select cache_id from capacity where full_percent > 100")]
    for cache_id in over:
        evict(worker, cache_id)
    left = worker.rows("select tenant, cache, entries from capacity where entries > 0 order by tenant, cache")
    assert [(row["tenant"], row["cache"], row["entries"]) for row in left] == [
        ("acme", "large", 3),
        ("acme", "small", 2),
        ("other", "large", 8),
        ("other", "small", 2),
    ]


def test_a_quota_is_kept_where_the_largest_cache_is_pinned(app: Session, worker: Session, database_url: str) -> None:
    pinned = full(app, "a b c d", {})
    loose = app.cache("loose", {"eviction": "lru"})
    for name in "xyz":
        app.store(name, cache_id=loose)
    for name in "abcd":
        pin(app, pinned, name, pinned=True)
    set_quota(database_url, "acme", 5)
    worker.rows("select fold_changes()")
    for _ in range(2):
        for row in worker.rows("select cache_id from capacity where full_percent > 100"):
            evict(worker, row["cache_id"])
    assert kept(worker) == "a b c d z"


def set_quota(url: str, tenant: str, entries: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("update semcache.tenant set max_entries = %s where name = %s", (entries, tenant))
