from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sessions import Session, key


def change(app: Session, entry_id: UUID, **changes: Any) -> Any:
    nothing = {"ttl_ms": None, "clear_ttl": False, "tags": None, "pinned": None, "quarantined": None}
    return app.call(
        "change_entry", tenant_id=app.tenant_id, cache_id=app.cache_id, entry_id=entry_id, **(nothing | changes)
    )


def changed(app: Session, entry_id: UUID, **changes: Any) -> dict[str, Any]:
    change(app, entry_id, **changes)
    entry = app.entry(entry_id)
    assert entry is not None
    return entry


def test_what_is_not_given_stays(app: Session) -> None:
    entry_id = app.store(ttl_ms=60_000, tags=["a"])["entry_id"]
    assert changed(app, entry_id) == changed(app, entry_id)
    assert changed(app, entry_id)["tags"] == ["a"]


def test_a_lifetime_counts_from_now_and_can_be_taken_away(app: Session) -> None:
    entry_id = app.store(ttl_ms=60_000)["entry_id"]
    app.rows("update semcache.entry set created_at = now() - interval '1 day' returning 1")
    expires_at = changed(app, entry_id, ttl_ms=5_000)["expires_at"]
    assert app.one("select %(at)s between now() and now() + interval '5 seconds'", at=expires_at)
    assert changed(app, entry_id, clear_ttl=True)["expires_at"] is None


def test_a_quarantine_keeps_its_first_moment_and_can_be_lifted(app: Session) -> None:
    entry_id = app.store()["entry_id"]
    first = changed(app, entry_id, quarantined=True)["quarantined_at"]
    assert first is not None
    assert changed(app, entry_id, quarantined=True)["quarantined_at"] == first
    assert changed(app, entry_id, quarantined=False)["quarantined_at"] is None


def test_tags_and_pin_are_replaced(app: Session) -> None:
    entry = changed(app, app.store(tags=["a"])["entry_id"], tags=[], pinned=True)
    assert (entry["tags"], entry["pinned"]) == ([], True)


def test_replicas_are_told_of_the_request(app: Session) -> None:
    number = change(app, app.store("first")["entry_id"], pinned=True)
    told = app.one("select exact_key from semcache.invalidation where invalidation_id = %(n)s", n=number)
    assert told == key("first")


def test_an_entry_that_is_not_there_or_flushed_is_told(app: Session) -> None:
    flushed = app.store()["entry_id"]
    app.call("flush_cache", tenant_id=app.tenant_id, cache_id=app.cache_id)
    for entry_id in (uuid4(), flushed):
        with pytest.raises(psycopg.DatabaseError) as gone:
            change(app, entry_id, pinned=True)
        assert gone.value.sqlstate == "SC405"
