"""read_figures."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb
from sessions import Session

OBSERVE = """
insert into semcache.observation (tenant_id, cache_id, entry_id, similarity, verdict, source, served, inclusion)
values (%(tenant_id)s, %(cache_id)s, %(entry_id)s, %(similarity)s, %(verdict)s, 'audit', %(served)s, %(inclusion)s)
"""


def observe(
    app: Session, verdict: str, similarity: float, *, served: bool = True, inclusion: float | None = 0.5
) -> None:
    values = {"verdict": verdict, "similarity": similarity, "served": served, "inclusion": inclusion}
    app.connection.execute(
        OBSERVE, {"tenant_id": app.tenant_id, "cache_id": app.cache_id, "entry_id": uuid4(), **values}
    )


def test_an_empty_database_says_nothing_of_hits(worker: Session) -> None:
    found = worker.call("read_figures")
    assert (found["entries"], found["hit_entries"]) == (0, 0)
    assert found["table_bytes"]["entry"] > 0
    assert [found[name] for name in ("mean_hits", "semantic_wrong", "served_labelled")] == [None] * 3


def test_hits_are_counted_over_all_tenants(session: Callable[..., Session], worker: Session) -> None:
    for tenant, hits in (("acme", 1), ("other", 3)):
        app = session(tenant)
        served = {"cache_id": app.cache_id, "entry_id": str(app.store()["entry_id"]), "served": True}
        row = {"at": "2030-01-01T00:00:00Z", "outcome": "hit", "reason": "same_request", "latency_ms": 1}
        requests = Jsonb([row | served | {"tokens_saved": 0, "tokens_spent": 0}] * hits)
        app.call("record_requests", tenant_id=app.tenant_id, requests=requests)
    found = worker.call("read_figures")
    assert (found["entries"], found["hit_entries"], found["mean_hits"], found["deviation_hits"]) == (2, 2, 2, 1)


def test_only_random_and_served_verdicts_carry_the_rates_each_by_its_weight(app: Session, worker: Session) -> None:
    observe(app, "wrong", 0.96, inclusion=0.5)
    observe(app, "correct", 0.97, inclusion=0.25)
    observe(app, "correct", 1.0, inclusion=0.5)
    observe(app, "wrong", 0.96, served=False)
    observe(app, "wrong", 0.96, inclusion=None)
    found = worker.call("read_figures")
    assert found["semantic_wrong"] == pytest.approx(2 / 6)
    assert found["semantic_labelled"] == pytest.approx(36 / 20)
    assert found["served_wrong"] == pytest.approx(2 / 8)
    assert found["served_labelled"] == pytest.approx(64 / 24)
