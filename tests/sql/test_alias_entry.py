from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb
from sessions import Session, feedback, key


def alias(app: Session, entry_id: UUID, prompt: str = "second") -> Any:
    return app.call(
        "alias_entry",
        tenant_id=app.tenant_id,
        cache_id=app.cache_id,
        entry_id=entry_id,
        exact_key=key(prompt),
        prompt=prompt,
        prompt_verbatim=None,
    )


@pytest.fixture
def entry_id(app: Session) -> UUID:
    stored = app.store("first", ttl_ms=60_000, tags=["a"], attributes=Jsonb({"b": "c"}))
    app.rows("update semcache.entry set created_at = now() - interval '1 hour' returning 1")
    return UUID(str(stored["entry_id"]))


def test_it_shares_the_answer_and_all_but_the_request(app: Session, entry_id: UUID) -> None:
    made, original = app.entry(alias(app, entry_id)), app.entry(entry_id)
    assert made is not None
    assert original is not None
    differ = {name for name in made if made[name] != original[name]}
    assert differ == {"entry_id", "exact_key", "prompt", "alias_of"}
    assert (made["alias_of"], made["prompt"], made["exact_key"]) == (entry_id, "second", key("second"))
    assert (app.count("output"), app.count("embedding"), app.count("entry_usage")) == (1, 1, 2)


def test_a_request_that_has_an_entry_keeps_it(app: Session, entry_id: UUID) -> None:
    assert alias(app, entry_id) is not None
    assert alias(app, entry_id) is None
    app.rows("update semcache.entry set quarantined_at = now() where alias_of is not null returning 1")
    assert alias(app, entry_id) is None, "a caller called it wrong for this request"
    assert app.count("entry") == 2


@pytest.mark.parametrize("end", ["quarantined_at = now()", "expires_at = now()", "epoch = epoch - 1"])
def test_a_dead_entry_answers_nothing(app: Session, entry_id: UUID, end: str) -> None:
    app.rows(f"update semcache.entry set {end} returning 1")
    assert alias(app, entry_id) is None
    assert alias(app, uuid4()) is None
    assert app.count("entry") == 1


def delete(app: Session, entry_id: UUID) -> None:
    app.call("delete_entry", tenant_id=app.tenant_id, cache_id=app.cache_id, entry_id=entry_id)


def change(app: Session, entry_id: UUID) -> None:
    nothing = {"ttl_ms": None, "clear_ttl": False, "tags": ["b"], "pinned": None, "quarantined": None}
    app.call("change_entry", tenant_id=app.tenant_id, cache_id=app.cache_id, entry_id=entry_id, **nothing)


def call_wrong(app: Session, entry_id: UUID) -> None:
    app.call("record_feedback", tenant_id=app.tenant_id, cache_id=app.cache_id, **feedback(entry_id, "wrong"))


def replace(app: Session, _: UUID) -> None:
    app.store("first", attributes=Jsonb({"b": "c"}))


@pytest.mark.parametrize("end", [delete, change, call_wrong, replace])
def test_it_goes_with_what_ends_or_changes_the_answer(app: Session, entry_id: UUID, end: Any) -> None:
    made = alias(app, entry_id)
    end(app, entry_id)
    assert app.entry(made) is None


def test_a_verdict_on_it_alone_leaves_the_other(app: Session, entry_id: UUID) -> None:
    made = alias(app, entry_id)
    call_wrong(app, made)
    original = app.entry(entry_id)
    assert original is not None
    assert original["quarantined_at"] is None
    app.call("record_feedback", tenant_id=app.tenant_id, cache_id=app.cache_id, **feedback(entry_id, "correct"))
    assert app.entry(made) is not None


def test_it_outlives_an_entry_that_only_made_room(app: Session, worker: Session, entry_id: UUID) -> None:
    made = alias(app, entry_id)
    worker.call("remove_entries", tenant_id=app.tenant_id, entry_ids=[entry_id])
    kept = app.entry(made)
    assert kept is not None
    assert kept["alias_of"] is None
    assert app.count("output") == 1


def test_a_store_of_its_request_takes_its_place(app: Session, entry_id: UUID) -> None:
    made = alias(app, entry_id)
    app.store("second", attributes_key=key(""))
    assert app.entry(made) is None
    assert app.count("output") == 2


def test_nobody_aliases_what_another_tenant_owns(app: Session, session: Any, entry_id: UUID) -> None:
    other = session("globex")
    assert alias(other, entry_id) is None
