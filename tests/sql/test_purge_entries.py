from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

from sessions import Session, key

LOG = """
insert into semcache.request_log (at, tenant_id, cache_id, outcome, reason, latency_ms)
select now() - age * interval '1 day', %(tenant_id)s, %(cache_id)s, 'miss', 'no_entry', 1
from unnest(%(ages)s::int[]) age
returning 1
"""
CHUNK = (
    "insert into semcache.flight_chunk (tenant_id, holder, starts_at, piece, at)"
    " values (%(tenant_id)s, %(id)s, 0, %(piece)s, now() - %(ago)s) returning 1"
)
LEASE = "insert into semcache.lease (name, holder, expires_at) values (%(name)s, %(id)s, now() - %(ago)s) returning 1"


def purge(worker: Session, limit: int = 1000) -> int:
    return int(worker.call("purge_entries", limit=limit, keep_log=timedelta(days=30)))


def prompts(worker: Session) -> list[str]:
    return [row["prompt"] for row in worker.rows("select prompt from semcache.entry order by prompt")]


def test_the_dead_of_all_tenants_go_and_the_living_stay(
    app: Session, worker: Session, session: Callable[..., Session]
) -> None:
    other = session("other")
    deleted = other.cache("deleted")
    other.store("of a deleted cache", cache_id=deleted)
    other.call("delete_cache", tenant_id=other.tenant_id, cache_id=deleted)
    other.store("flushed")
    other.call("flush_cache", tenant_id=other.tenant_id, cache_id=other.cache_id)
    other.store("of the new epoch")
    app.store("long expired", ttl_ms=1)
    app.rows("update entry set expires_at = now() - interval '2 hours' returning 1")
    app.store("just expired", ttl_ms=1)
    app.store("quarantined")
    app.rows("update entry set quarantined_at = now() where prompt = 'quarantined' returning 1")
    app.store("without end")
    assert purge(worker) == 3
    assert prompts(worker) == ["just expired", "of the new epoch", "quarantined", "without end"]
    assert worker.count("output") == worker.count("embedding") == 4
    assert purge(worker) == 0


def test_a_batch_is_bounded_and_the_next_goes_on(app: Session, worker: Session) -> None:
    for number in range(5):
        app.store(str(number))
    app.call("flush_cache", tenant_id=app.tenant_id, cache_id=app.cache_id)
    assert [purge(worker, limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_the_log_is_kept_so_long_and_removed_in_batches(app: Session, worker: Session) -> None:
    app.rows(LOG, tenant_id=app.tenant_id, cache_id=app.cache_id, ages=[1, 29, 31, 32, 33])
    assert [purge(worker, limit=2) for _ in range(3)] == [2, 1, 0]
    assert worker.count("request_log") == 2


def test_what_replicas_have_forgotten_goes_but_never_the_newest(app: Session, worker: Session) -> None:
    for _ in range(2):
        app.call("record_invalidation", cache_id=app.cache_id, exact_key=key("stored anew"))
    worker.call("record_invalidations", cache_id=app.cache_id, exact_keys=[key("evicted"), key("evicted too")])
    assert purge(worker) == 0
    newest = worker.one("select max(invalidation_id) from semcache.invalidation")
    worker.rows("update semcache.invalidation set at = now() - interval '11 minutes' returning 1")
    assert [purge(worker, limit=2) for _ in range(3)] == [2, 1, 0]
    assert worker.one("select invalidation_id from semcache.invalidation") == newest
    assert app.call("renew_lease", name="replica:new", holder=uuid4(), seconds=60.0, confirmed=None) == newest


def test_leases_of_replicas_long_gone_go(app: Session, worker: Session) -> None:
    for name, ago in (("replica:old", 2), ("replica:new", 0), ("other:old", 2)):
        app.rows(LEASE, name=name, id=uuid4(), ago=timedelta(hours=ago))
    purge(worker)
    left = {row["name"] for row in worker.rows("select name from semcache.lease")}
    assert left == {"replica:new", "other:old"}


def test_what_a_dead_replica_has_shown_goes(app: Session, worker: Session) -> None:
    lives = uuid4()
    app.rows(LEASE, name="flight:x", id=lives, ago=timedelta(minutes=-1))
    for piece, holder, ago in (("under way", lives, 10), ("read to its end now", uuid4(), 0), ("left", uuid4(), 10)):
        app.rows(CHUNK, tenant_id=app.tenant_id, id=holder, piece=piece.encode(), ago=timedelta(minutes=ago))
    purge(worker)
    left = {bytes(row["piece"]) for row in worker.rows("select piece from semcache.flight_chunk")}
    assert left == {b"under way", b"read to its end now"}


def test_no_request_is_waited_for(app: Session, worker: Session) -> None:
    app.store("in use")
    app.store("free")
    app.call("flush_cache", tenant_id=app.tenant_id, cache_id=app.cache_id)
    with app.holding():
        app.rows("select from semcache.entry where prompt = 'in use' for update")
        assert purge(worker) == 1
    assert prompts(worker) == ["in use"]
