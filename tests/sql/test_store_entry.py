from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from sessions import Session, key

from service.policy.guards.features import Features


def test_an_entry_has_its_vector_and_its_output(app: Session) -> None:
    stored = app.store(ttl_ms=60_000, tags=["a"], attributes=Jsonb({"team": "x"}), prompt_tokens=3)
    entry = app.entry(stored["entry_id"])
    assert entry is not None
    assert (entry["tenant_id"], entry["cache_id"], entry["epoch"]) == (app.tenant_id, app.cache_id, 0)
    assert (entry["tags"], entry["attributes"], entry["pinned"]) == (["a"], {"team": "x"}, False)
    assert entry["expires_at"] - entry["created_at"] == timedelta(minutes=1)
    assert stored["expires_at"] == entry["expires_at"]
    assert stored["invalidation_id"] is None, "nobody can remember what was never there"
    (vector,) = app.rows("select * from semcache.embedding")
    assert (vector["entry_id"], vector["scope_id"]) == (entry["entry_id"], entry["scope_id"])
    (output,) = app.rows("select output_id, bytes, prompt_tokens from semcache.output")
    assert output == {"output_id": entry["output_id"], "bytes": len('{"format": 1}'), "prompt_tokens": 3}


def test_without_a_vector_it_can_be_found_exactly_only(app: Session) -> None:
    app.store(vector=None, embedder_id=None)
    assert (app.count("entry"), app.count("embedding")) == (1, 0)


def test_the_same_request_replaces_the_entry_whatever_its_state(app: Session) -> None:
    first = app.store()
    app.rows("update semcache.entry set quarantined_at = now() returning 1")
    second = app.store(payload='{"format": 1, "new": true}')
    assert second["invalidation_id"] is not None, "replicas may remember the first answer"
    assert app.entry(first["entry_id"]) is None
    entry = app.entry(second["entry_id"])
    assert entry is not None
    assert entry["quarantined_at"] is None
    assert (app.count("entry"), app.count("embedding"), app.count("output")) == (1, 1, 1)


def test_what_replaces_a_pinned_entry_is_pinned_until_a_flush(app: Session) -> None:
    app.store()
    app.rows("update semcache.entry set pinned = true returning 1")
    replaced = app.entry(app.store()["entry_id"])
    assert replaced is not None
    assert replaced["pinned"]
    app.call("flush_cache", tenant_id=app.tenant_id, cache_id=app.cache_id)
    after = app.entry(app.store()["entry_id"])
    assert after is not None
    assert not after["pinned"]


def test_other_attributes_make_another_entry(app: Session) -> None:
    app.store()
    other = app.store(attributes_key=key("team"), attributes=Jsonb({"team": "x"}))
    assert app.count("entry") == 2
    assert other["invalidation_id"] is not None, "the answer without attributes may be remembered for this request"


def test_variants_fill_their_places_and_then_the_oldest_goes(app: Session) -> None:
    first, second = app.store(variants=2), app.store(variants=2)
    assert app.count("entry") == 2
    third = app.store(variants=2)
    left = {row["entry_id"] for row in app.rows("select entry_id from semcache.entry")}
    assert left == {second["entry_id"], third["entry_id"]}
    assert app.entry(first["entry_id"]) is None


def test_after_a_flush_it_is_of_the_new_epoch(app: Session) -> None:
    app.call("flush_cache", tenant_id=app.tenant_id, cache_id=app.cache_id)
    entry = app.entry(app.store()["entry_id"])
    assert entry is not None
    assert entry["epoch"] == 1


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("flush_cache", {}),
        ("change_policy", {"policy": Jsonb({"mode": "off"})}),
        (
            "delete_entries",
            {"attributes": None, "tags": ["none has it"], "model": None, "older_than": None, "dry_run": False},
        ),
    ],
)
def test_an_answer_from_before_a_change_of_the_cache_is_not_stored(
    app: Session, function: str, arguments: dict[str, Any]
) -> None:
    before = app.changes()
    app.call(function, tenant_id=app.tenant_id, cache_id=app.cache_id, **arguments)
    assert app.store(changes=before) == {"entry_id": None, "expires_at": None, "invalidation_id": None}
    assert app.count("entry") == app.count("output") == 0
    assert app.store()["entry_id"] is not None


def test_a_cache_that_is_gone_is_told(app: Session) -> None:
    cache_id = app.cache()
    scope_id = app.scope(cache_id=cache_id)
    app.call("delete_cache", tenant_id=app.tenant_id, cache_id=cache_id)
    with pytest.raises(psycopg.DatabaseError) as gone:
        app.store(cache_id=cache_id, scope_id=scope_id)
    assert gone.value.sqlstate == "SC404"


def test_a_vector_of_another_length_is_refused(app: Session) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        app.store(vector="[1,0]")
    assert app.count("entry") == 0


def test_of_equal_stores_at_once_one_entry_stays(app: Session, session: Callable[..., Session]) -> None:
    scope_id = app.scope()
    others = [session() for _ in range(4)]
    with ThreadPoolExecutor() as pool:
        with app.holding():
            app.store(scope_id=scope_id)
            rivals = [pool.submit(other.store, scope_id=scope_id) for other in others]
            for other in others:
                app.waits(other)
        stored = [rival.result() for rival in rivals]
    assert all(each["invalidation_id"] is not None for each in stored), "each replaced the one before"
    assert (app.count("entry"), app.count("embedding"), app.count("output")) == (1, 1, 1)
    assert app.one("select entry_id from semcache.entry") in {each["entry_id"] for each in stored}


def test_the_features_of_a_prompt_stand_beside_its_vector(app: Session) -> None:
    named = {field.name: [field.name] for field in fields(Features)}
    entry_id = app.store(features=Jsonb(named), features_version="7")["entry_id"]
    (row,) = app.rows("select * from semcache.feature")
    assert row == {"entry_id": entry_id, "tenant_id": app.tenant_id, "version": 7} | named


def test_a_feature_that_a_prompt_has_not_is_null(app: Session) -> None:
    app.store(features=Jsonb({"numbers": ["30 kilogram"]}), answer_key=key("answer"))
    (row,) = app.rows("select numbers, dates from semcache.feature")
    assert row == {"numbers": ["30 kilogram"], "dates": None}
    assert app.one("select answer_key from semcache.output") == key("answer")
