from __future__ import annotations

import psycopg
import pytest
from sessions import Session


def test_a_tenant_is_made_once_with_its_cache_default(app: Session) -> None:
    made = app.call("ensure_tenant", name="new")
    assert app.call("ensure_tenant", name="new") == made
    with app.holding():
        app.rows("select set_config('semcache.tenant_id', %(id)s, true)", id=str(made))
        assert app.rows("select name, tenant_id from semcache.cache") == [{"name": "default", "tenant_id": made}]


def test_the_session_keeps_its_tenant(app: Session) -> None:
    app.call("ensure_tenant", name="new")
    assert app.one("select semcache.current_tenant()") == app.tenant_id


def test_a_name_that_cannot_stand_in_a_url_is_refused(app: Session) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        app.call("ensure_tenant", name="a b")
