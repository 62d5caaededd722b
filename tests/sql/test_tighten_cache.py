from __future__ import annotations

from typing import Any

from psycopg.types.json import Jsonb
from sessions import Session

SAID = {"confirmed": 7, "refuted": 0}


def tighten(worker: Session, **changes: Any) -> Any:
    arguments = {
        "tenant_id": worker.tenant_id,
        "cache_id": worker.cache_id,
        "embedder_id": worker.embedder_id,
        "policy": None,
        "detail": Jsonb({"drift": "seen"}),
    }
    return worker.call("tighten_cache", **arguments | changes)


def test_what_was_learned_of_this_cache_alone_is_gone(app: Session, worker: Session) -> None:
    other = app.cache()
    fit = {"entry_id": str(app.store()["entry_id"]), "slope": 9.5, "middle": 0.9, "variance": 0.01, "n": 9} | SAID
    for cache_id, fits in ((worker.cache_id, [fit]), (other, [])):
        worker.call(
            "save_calibration",
            tenant_id=worker.tenant_id,
            cache_id=cache_id,
            embedder_id=worker.embedder_id,
            model=Jsonb({"version": 1}),
            frequencies=Jsonb({"total": 5, "counts": {}}),
            pooled=None,
            observations=3,
            learned=5,
            fits=Jsonb(fits),
        )
    number = tighten(worker)
    rows = worker.rows(
        "select cache_id, model, frequencies ->> 'total' as words, observations, tightened_at is not null as told "
        "from semcache.calibration order by cache_id"
    )
    assert rows == [
        {"cache_id": worker.cache_id, "model": None, "words": "5", "observations": 0, "told": True},
        {"cache_id": other, "model": {"version": 1}, "words": "5", "observations": 3, "told": False},
    ]
    assert app.count("entry_fit") == 0
    told = worker.one("select cache_id from semcache.invalidation where invalidation_id = %(n)s", n=number)
    assert told == worker.cache_id


def test_a_policy_is_merged_and_only_then_calls_in_flight_are_parted(app: Session, worker: Session) -> None:
    app.call("change_policy", tenant_id=app.tenant_id, cache_id=app.cache_id, policy=Jsonb({"mode": "semantic"}))
    before = app.one("select changes from semcache.cache where cache_id = %(c)s", c=app.cache_id)
    tighten(worker)
    assert app.one("select changes from semcache.cache where cache_id = %(c)s", c=app.cache_id) == before
    tighten(worker, policy=Jsonb({"similarityThreshold": 0.975}))
    (row,) = app.rows("select policy, changes from semcache.cache where cache_id = %(c)s", c=app.cache_id)
    assert row == {"policy": {"mode": "semantic", "similarityThreshold": 0.975}, "changes": before + 1}
    logged = app.rows("select detail from semcache.audit_log where action = 'tighten' order by audit_log_id")
    assert [entry["detail"] for entry in logged] == [
        {"drift": "seen", "policy": None},
        {"drift": "seen", "policy": {"similarityThreshold": 0.975}},
    ]


def test_a_cache_that_is_gone_is_left_alone(app: Session, worker: Session) -> None:
    cache_id = app.cache()
    app.call("delete_cache", tenant_id=app.tenant_id, cache_id=cache_id)
    assert tighten(worker, cache_id=cache_id) is None
    assert worker.count("calibration") == 0
