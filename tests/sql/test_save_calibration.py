from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb
from sessions import Session


def save(worker: Session, **changes: Any) -> Any:
    arguments = {
        "tenant_id": worker.tenant_id,
        "cache_id": worker.cache_id,
        "embedder_id": worker.embedder_id,
        "model": Jsonb({"version": 1}),
        "frequencies": Jsonb({"total": 0, "counts": {}}),
        "pooled": None,
        "observations": 3,
        "learned": 5,
        "fits": Jsonb([]),
    }
    return worker.call("save_calibration", **arguments | changes)


def fit(entry_id: UUID, n: int) -> dict[str, Any]:
    counts = {"confirmed": n - 2, "refuted": 0}
    return {"entry_id": str(entry_id), "slope": 20.5, "middle": 0.9, "variance": 0.01, "n": n} | counts


def test_a_later_fit_replaces_the_earlier_and_replicas_are_told(worker: Session) -> None:
    save(worker)
    number = save(worker, observations=4, learned=9)
    (row,) = worker.rows("select model, observations, learned from semcache.calibration")
    assert row == {"model": {"version": 1}, "observations": 4, "learned": 9}
    (told,) = worker.rows(
        "select cache_id, exact_key from semcache.invalidation where invalidation_id = %(n)s", n=number
    )
    assert told == {"cache_id": worker.cache_id, "exact_key": None}


def test_entries_keep_their_last_fit_and_one_that_is_gone_gets_none(app: Session, worker: Session) -> None:
    entry_id = app.store()["entry_id"]
    save(worker, fits=Jsonb([fit(entry_id, 6), fit(uuid4(), 6)]))
    save(worker, fits=Jsonb([fit(entry_id, 9)]))
    (row,) = app.rows("select entry_id, slope, n, confirmed from semcache.entry_fit")
    assert row == {"entry_id": entry_id, "slope": 20.5, "n": 9, "confirmed": 7}
    save(worker, fits=Jsonb([{"entry_id": str(entry_id), "confirmed": 1, "refuted": 2}]))
    (row,) = app.rows("select slope, n, confirmed, refuted from semcache.entry_fit")
    assert row == {"slope": None, "n": None, "confirmed": 1, "refuted": 2}, "it loses the fit it had"
    app.call("delete_entry", tenant_id=app.tenant_id, cache_id=app.cache_id, entry_id=entry_id)
    assert app.count("entry_fit") == 0


def test_a_fit_from_before_an_alarm_of_drift_is_not_kept(app: Session, worker: Session) -> None:
    entry_id = app.store()["entry_id"]
    worker.call(
        "tighten_cache",
        tenant_id=worker.tenant_id,
        cache_id=worker.cache_id,
        embedder_id=worker.embedder_id,
        policy=None,
        detail=Jsonb({}),
    )
    assert save(worker, fits=Jsonb([fit(entry_id, 6)])) is None
    assert worker.one("select model from semcache.calibration") is None
    assert app.count("entry_fit") == 0
    alarm = worker.one("select tightened_at from semcache.calibration")
    assert save(worker, fits=Jsonb([fit(entry_id, 6)]), tightened_at=alarm) is not None
    assert worker.one("select model from semcache.calibration") == {"version": 1}
    assert app.count("entry_fit") == 1


def test_a_cache_that_is_gone_gets_none(app: Session, worker: Session) -> None:
    cache_id = app.cache()
    app.call("delete_cache", tenant_id=app.tenant_id, cache_id=cache_id)
    assert save(worker, cache_id=cache_id) is None
    assert worker.count("calibration") == 0


def test_the_service_fits_nothing(app: Session) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        save(app)
