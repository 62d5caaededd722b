"""The views for people: each answers, for the app's tenant alone and for a worker as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb
from sessions import Session, feedback

from service.resources import sql_dir


@pytest.fixture
def used(app: Session) -> UUID:
    """An entry that was served, one that never was, one that was called wrong, and a miss."""
    app.store("idle")
    served, wrong = app.store("served")["entry_id"], app.store("wrong")["entry_id"]
    lookup = {
        "at": app.one("select now()::text"),
        "cache_id": app.cache_id,
        "latency_ms": 1,
        "tokens_saved": 5,
        "tokens_spent": 0,
    }
    hit = lookup | {"outcome": "hit", "reason": "same_request", "entry_id": str(served), "served": True}
    miss = lookup | {"outcome": "miss", "reason": "below_threshold", "similarity": 0.7}
    app.call("record_requests", tenant_id=app.tenant_id, requests=Jsonb([hit, miss]))
    said = feedback(wrong, "wrong", similarity=0.97, prompt="asked")
    app.call("record_feedback", tenant_id=app.tenant_id, cache_id=app.cache_id, **said)
    return UUID(str(served))


@pytest.mark.parametrize("path", sorted((sql_dir() / "views").glob("*.sql")), ids=lambda path: path.stem)
def test_every_view_answers_and_shows_a_tenant_its_own(
    used: UUID, app: Session, worker: Session, session: Callable[..., Session], path: Path
) -> None:
    def shown(who: Session) -> set[str]:
        rows = who.rows(f"select * from semcache.{path.stem}")
        return {row["tenant"] for row in rows if "tenant" in row}

    session("other").store("never served")
    assert shown(app) <= {"acme"}
    assert shown(worker) >= shown(app)


def test_the_overview_counts_the_day(used: UUID, app: Session) -> None:
    (row,) = app.rows("select tenant, cache, entries, lookups, hit_percent, tokens_saved from overview")
    assert row == {
        "tenant": "acme",
        "cache": "default",
        "entries": 3,
        "lookups": 2,
        "hit_percent": 50,
        "tokens_saved": 10,
    }


def test_each_view_finds_what_it_is_for(used: UUID, app: Session) -> None:
    assert app.rows("select prompt, hits from hottest") == [{"prompt": "served", "hits": 1}]
    assert app.rows("select prompt from wasteful") == [{"prompt": "idle"}]
    assert app.rows("select prompt, why from stale") == [{"prompt": "wrong", "why": "quarantined"}]
    assert app.rows("select asked, stored from false_hits") == [{"asked": "asked", "stored": "wrong"}]
    (why,) = app.rows("select reason, requests, percent from misses_by_reason")
    assert why == {"reason": "below_threshold", "requests": 1, "percent": 100}
