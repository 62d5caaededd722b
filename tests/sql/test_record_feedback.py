from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sessions import Session, feedback, key


def judge(app: Session, entry_id: UUID, verdict: str) -> Any:
    said = feedback(entry_id, verdict, similarity=0.97, prompt="what was asked")
    return app.call("record_feedback", tenant_id=app.tenant_id, cache_id=app.cache_id, **said)


@pytest.mark.parametrize(
    ("verdict", "quarantined", "expired", "told"),
    [("correct", False, False, False), ("wrong", True, False, True), ("stale", False, True, True)],
)
def test_a_verdict_is_kept_and_acts_at_once(
    app: Session, verdict: str, quarantined: bool, expired: bool, told: bool
) -> None:
    entry_id = app.store("first")["entry_id"]
    number = judge(app, entry_id, verdict)
    (state,) = app.rows(
        "select quarantined_at is not null as quarantined, coalesce(expires_at <= now(), false) as expired "
        "from semcache.entry"
    )
    assert state == {"quarantined": quarantined, "expired": expired}
    (kept,) = app.rows("select entry_id, verdict, source, prompt, similarity from semcache.observation")
    assert kept["similarity"] == pytest.approx(0.97)
    assert (kept["entry_id"], kept["verdict"], kept["source"]) == (entry_id, verdict, "feedback")
    keys = app.rows("select exact_key from semcache.invalidation where invalidation_id = %(n)s", n=number)
    assert keys == ([{"exact_key": key("first")}] if told else [])


def test_stale_does_not_give_life_back(app: Session) -> None:
    entry_id = app.store(ttl_ms=60_000)["entry_id"]
    app.rows("update semcache.entry set expires_at = now() - interval '1 day' returning 1")
    judge(app, entry_id, "stale")
    assert app.one("select expires_at < now() - interval '23 hours' from semcache.entry")


def test_an_entry_that_is_not_there_is_told_and_nothing_kept(app: Session) -> None:
    with pytest.raises(psycopg.DatabaseError) as gone:
        judge(app, uuid4(), "wrong")
    assert gone.value.sqlstate == "SC405"
    assert app.count("observation") == 0


def test_an_unknown_verdict_is_refused(app: Session) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        judge(app, app.store()["entry_id"], "so so")
