from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from sessions import Session, key

ALIAS = """
insert into semcache.entry (
    tenant_id, cache_id, scope_id, output_id, epoch, exact_key, attributes_key, prompt, provenance
)
select tenant_id, cache_id, scope_id, output_id, epoch, %(key)s, attributes_key, 'alias', 'upstream'
from semcache.entry
where entry_id = %(id)s
returning entry_id
"""


def remove(app: Session, *ids: UUID) -> object:
    return app.call("remove_entries", tenant_id=app.tenant_id, entry_ids=list(ids))


def two_of_one_output(app: Session) -> tuple[UUID, UUID]:
    first = app.store("first")["entry_id"]
    return first, app.one(ALIAS, key=key("alias"), id=first)


def test_an_output_goes_with_its_last_entry(app: Session) -> None:
    first, alias = two_of_one_output(app)
    assert remove(app, first) == 1
    assert (app.count("entry"), app.count("embedding"), app.count("output")) == (1, 0, 1)
    assert remove(app, alias) == 1
    assert (app.count("entry"), app.count("output")) == (0, 0)


def test_removing_twice_or_nothing_does_nothing(app: Session) -> None:
    first, _ = two_of_one_output(app)
    remove(app, first)
    assert remove(app, first) == 0
    assert remove(app) == 0


def test_another_tenants_entries_stay(app: Session, session: Callable[..., Session]) -> None:
    entry_id = app.store()["entry_id"]
    assert remove(session("other"), entry_id) == 0
    assert app.count("entry") == 1


def test_of_two_who_remove_the_last_entries_at_once_the_later_removes_the_output(
    app: Session, session: Callable[..., Session]
) -> None:
    first, alias = two_of_one_output(app)
    rival = session()
    with ThreadPoolExecutor() as pool:
        with app.holding():
            remove(app, first)
            removal = pool.submit(remove, rival, alias)
            app.waits(rival)
        assert removal.result() == 1
    assert (app.count("entry"), app.count("output")) == (0, 0)


def test_opposite_orders_do_not_deadlock(app: Session, session: Callable[..., Session]) -> None:
    ids = sorted(app.store(prompt)["entry_id"] for prompt in "abcd")
    rival = session()
    with ThreadPoolExecutor() as pool:
        with app.holding():
            remove(app, *ids[:2])
            removal = pool.submit(remove, rival, *reversed(ids))
            app.waits(rival)
            remove(app, *ids[2:])
        assert removal.result() == 0
    assert app.count("entry") == 0
