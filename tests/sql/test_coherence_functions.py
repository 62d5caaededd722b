"""record_invalidation and renew_lease: of two who meet, one comes first, and the other knows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

from sessions import Session, key

from service.store.queries import query

HOLDER = UUID(int=1)


def invalidate(app: Session, request: str | None = "first") -> int:
    return int(app.call("record_invalidation", cache_id=app.cache_id, exact_key=request and key(request)))


def renew(app: Session, confirmed: int | None, holder: UUID = HOLDER, seconds: float = 60.0) -> int:
    return int(app.call("renew_lease", name=f"replica:{holder}", holder=holder, seconds=seconds, confirmed=confirmed))


def lagging(app: Session, number: int) -> Any:
    return app.rows(query("lagging_replicas"), holder=uuid4(), invalidation_id=number)[0]["seconds"]


def test_invalidations_are_numbered_as_they_are_committed(app: Session, session: Callable[..., Session]) -> None:
    rival = session()
    with ThreadPoolExecutor() as pool:
        with app.holding():
            first = invalidate(app)
            later = pool.submit(invalidate, rival)
            app.waits(rival)
            assert rival.connection.info.transaction_status.name == "ACTIVE"
        assert later.result() == first + 1


def test_a_new_replica_starts_at_the_newest_invalidation(app: Session) -> None:
    assert renew(app, None) == 0
    number = invalidate(app)
    other = uuid4()
    assert renew(app, None, other) == number
    assert app.one("select confirmed from lease where holder = %(id)s", id=other) == number


def test_a_renewal_tells_what_is_new_and_confirms_only_what_was_followed(app: Session) -> None:
    renew(app, None)
    number = invalidate(app)
    assert renew(app, 0) == number
    assert lagging(app, number) > 0
    assert renew(app, number) == number
    assert lagging(app, number) is None


def test_a_lease_that_ran_out_is_not_waited_for(app: Session) -> None:
    renew(app, None, seconds=-1.0)
    assert lagging(app, invalidate(app)) is None


def test_a_renewal_that_came_first_is_waited_for(app: Session, session: Callable[..., Session]) -> None:
    """The replica renews without knowing of the invalidation: then the invalidation must know of its lease."""
    replica = session()
    with ThreadPoolExecutor() as pool:
        with replica.holding():
            assert renew(replica, None) == 0
            recording = pool.submit(invalidate, app)
            replica.waits(app)
        number = recording.result()
    assert lagging(app, number) > 0


def test_a_renewal_that_came_later_includes_the_invalidation(app: Session, session: Callable[..., Session]) -> None:
    replica = session()
    renew(replica, None)
    with ThreadPoolExecutor() as pool:
        with app.holding():
            number = invalidate(app)
            renewal = pool.submit(renew, replica, 0)
            app.waits(replica)
        assert renewal.result() == number


def test_renewals_do_not_wait_for_one_another(app: Session, session: Callable[..., Session]) -> None:
    other = session()
    with app.holding():
        renew(app, None)
        assert renew(other, None, uuid4()) == 0


def test_both_tell_those_who_listen(app: Session, session: Callable[..., Session]) -> None:
    listener = session()
    listener.connection.execute("listen semcache_invalidation")
    listener.connection.execute("listen semcache_confirmed")
    renew(app, None)
    number = invalidate(app)
    renew(app, 0)
    renew(app, number)
    heard = [(told.channel, told.payload) for told in listener.connection.notifies(timeout=5, stop_after=3)]
    assert heard == [
        ("semcache_invalidation", ""),  # a new replica
        ("semcache_invalidation", str(number)),
        ("semcache_confirmed", str(number)),
    ]
