from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from sessions import Session


def delete(app: Session, cache_id: int) -> object:
    return app.call("delete_cache", tenant_id=app.tenant_id, cache_id=cache_id)


def test_it_is_gone_at_once_and_only_once(app: Session) -> None:
    cache_id = app.cache()
    number = delete(app, cache_id)
    assert app.one("select deleted_at is not null from semcache.cache where cache_id = %(id)s", id=cache_id)
    assert app.one("select cache_id from semcache.invalidation where invalidation_id = %(n)s", n=number) == cache_id
    with pytest.raises(psycopg.DatabaseError) as gone:
        delete(app, cache_id)
    assert gone.value.sqlstate == "SC404"


def test_another_tenant_cannot(app: Session, session: Callable[..., Session]) -> None:
    cache_id = app.cache()
    other = session("other")
    with pytest.raises(psycopg.DatabaseError) as gone:
        delete(other, cache_id)
    assert gone.value.sqlstate == "SC404"
    with pytest.raises(psycopg.DatabaseError):
        other.call("delete_cache", tenant_id=app.tenant_id, cache_id=cache_id)
    assert app.one("select deleted_at is null from semcache.cache where cache_id = %(id)s", id=cache_id)


def test_the_cache_default_begins_anew(app: Session) -> None:
    app.store()
    delete(app, app.cache_id)
    (row,) = app.rows("select cache_id, policy from semcache.cache where name = 'default' and deleted_at is null")
    assert row["cache_id"] != app.cache_id
    assert row["policy"] == {}
