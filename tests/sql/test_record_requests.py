from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb
from sessions import Session, key


def lookup(app: Session, entry_id: UUID | None, at: str = "2030-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    return {
        "at": at,
        "cache_id": app.cache_id,
        "scope_key": key("scope").hex(),
        "entry_id": str(entry_id) if entry_id else None,
        "outcome": "hit" if entry_id else "miss",
        "reason": "same_request" if entry_id else "no_entry",
        "latency_ms": 0.5,
        "tokens_saved": 7,
        "tokens_spent": 0,
        "served": entry_id is not None,
    } | more


def record(app: Session, *lookups: dict[str, Any]) -> None:
    app.call("record_requests", tenant_id=app.tenant_id, requests=Jsonb(list(lookups)))


def test_each_lookup_is_a_row_and_hits_are_counted(app: Session) -> None:
    entry_id = app.store()["entry_id"]
    record(app, lookup(app, entry_id), lookup(app, entry_id, "2030-01-02T00:00:00Z"), lookup(app, None))
    assert app.count("request_log") == 3
    (usage,) = app.rows("select hits, last_hit_at = '2030-01-02T00:00:00Z' as latest from semcache.entry_usage")
    assert usage == {"hits": 2, "latest": True}
    (miss,) = app.rows("select scope_key, reason, stages, tokens_saved from request_log where outcome = 'miss'")
    assert miss == {"scope_key": key("scope"), "reason": "no_entry", "stages": {}, "tokens_saved": 7}


def test_counts_add_up_over_batches_and_time_never_goes_back(app: Session) -> None:
    entry_id = app.store()["entry_id"]
    record(app, lookup(app, entry_id, "2030-01-02T00:00:00Z"))
    record(app, lookup(app, entry_id, "2030-01-01T00:00:00Z"))
    (usage,) = app.rows("select hits, last_hit_at = '2030-01-02T00:00:00Z' as latest from semcache.entry_usage")
    assert usage == {"hits": 2, "latest": True}


def test_an_entry_that_is_gone_is_only_logged(app: Session) -> None:
    record(app, lookup(app, uuid4()))
    assert (app.count("request_log"), app.count("entry_usage")) == (1, 0)


def test_what_was_stored_and_not_served_is_no_hit(app: Session) -> None:
    record(app, lookup(app, app.store()["entry_id"], outcome="miss", served=False))
    assert app.one("select hits from entry_usage") == 0


def test_usage_stays_in_its_page(app: Session) -> None:
    """Counting hits must not write indexes (HOT), or a hot cache bloats."""
    entry_id = app.store()["entry_id"]
    for _ in range(5):
        record(app, lookup(app, entry_id))
    with psycopg.connect(app.connection.info.dsn, autocommit=True) as connection:
        connection.execute("select pg_stat_force_next_flush()")
    app.rows("select pg_stat_force_next_flush()")
    (stat,) = app.rows(
        "select n_tup_upd, n_tup_hot_upd from pg_catalog.pg_stat_user_tables where relname = 'entry_usage'"
    )
    assert stat == {"n_tup_upd": 5, "n_tup_hot_upd": 5}


def test_another_tenants_entries_are_not_counted(app: Session) -> None:
    entry_id = app.store()["entry_id"]
    other = app.call("ensure_tenant", name="other")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.call("record_requests", tenant_id=other, requests=Jsonb([lookup(app, entry_id)]))
    assert app.one("select hits from entry_usage") == 0
