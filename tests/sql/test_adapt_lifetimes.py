from __future__ import annotations

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb
from sessions import Session, key

HOUR = timedelta(hours=1)


def log(app: Session, cache_id: int, outcomes: list[str]) -> None:
    rows = [
        {
            "at": app.one("select now()::text"),
            "cache_id": cache_id,
            "scope_key": key("scope").hex(),
            "outcome": outcome,
            "reason": "x",
            "latency_ms": 1,
            "tokens_saved": 0,
            "tokens_spent": 0,
        }
        for outcome in outcomes
    ]
    app.call("record_requests", tenant_id=app.tenant_id, requests=Jsonb(rows))


def lifetime(app: Session, cache_id: int) -> int | None:
    value: int | None = app.one("select ttl_ms from scope where cache_id = %(id)s", id=cache_id)
    return value


@pytest.mark.parametrize(
    ("served", "policy", "becomes"),
    [
        ((20, 20), {"ttlMillis": 1_000_000}, 1_200_000),
        ((20, 20), {"ttlMillis": 86_000_000}, 86_400_000),
        ((20, 20), {"ttlMillis": 1_000_000, "maxTtlMillis": 1_100_000}, 1_100_000),
        ((5, 20), {"ttlMillis": 1_000_000}, 800_000),
        ((5, 20), {"ttlMillis": 310_000}, 300_000),
        ((10, 20), {"ttlMillis": 1_000_000}, None),
        ((19, 19), {"ttlMillis": 1_000_000}, None),
        ((20, 20), {}, 360_000),
    ],
)
def test_lifetimes_follow_the_hit_rate_within_bounds(
    app: Session, worker: Session, served: tuple[int, int], policy: dict[str, int], becomes: int | None
) -> None:
    cache_id = app.cache("adapts", policy | {"adaptiveTtl": "hit_rate"})
    app.scope(cache_id=cache_id)
    hits, of = served
    log(app, cache_id, ["hit"] * hits + ["miss"] * (of - hits))
    assert worker.call("adapt_lifetimes", window=HOUR) == (0 if becomes is None else 1)
    assert lifetime(app, cache_id) == becomes


def test_other_caches_and_what_is_long_ago_do_not_count(app: Session, worker: Session) -> None:
    fixed, adapts = app.cache("fixed", {"ttlMillis": 1000}), app.cache("adapts", {"adaptiveTtl": "hit_rate"})
    for cache_id in (fixed, adapts):
        app.scope(cache_id=cache_id)
    log(app, fixed, ["hit"] * 30)
    log(app, adapts, ["hit"] * 30)
    worker.rows("update request_log set at = now() - interval '2 hours' where cache_id = %(id)s returning 1", id=adapts)
    assert worker.call("adapt_lifetimes", window=HOUR) == 0
    assert (lifetime(app, fixed), lifetime(app, adapts)) == (None, None)
