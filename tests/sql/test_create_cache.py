from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from sessions import Session


def test_a_cache_has_its_policy_and_is_noted(app: Session) -> None:
    cache_id = app.cache("faq", {"mode": "exact"})
    assert app.one("select policy from semcache.cache where cache_id = %(id)s", id=cache_id) == {"mode": "exact"}
    assert app.one("select action from semcache.audit_log where cache_id = %(id)s", id=cache_id) == "create_cache"


def test_a_name_is_taken_once_in_a_tenant(app: Session, session: Callable[..., Session]) -> None:
    app.cache("faq")
    with pytest.raises(psycopg.DatabaseError) as taken:
        app.cache("faq")
    assert taken.value.sqlstate == "SC409"
    assert session("other").cache("faq")


def test_the_name_of_a_deleted_cache_is_free(app: Session) -> None:
    first = app.cache("faq")
    app.call("delete_cache", tenant_id=app.tenant_id, cache_id=first)
    assert app.cache("faq") != first
