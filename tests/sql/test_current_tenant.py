from __future__ import annotations

from sessions import Session


def test_it_is_the_sessions_and_none_when_unset_or_after_a_local_setting(app: Session) -> None:
    assert app.one("select semcache.current_tenant()") == app.tenant_id
    app.connection.execute("reset semcache.tenant_id")
    assert app.one("select semcache.current_tenant()") is None
    with app.holding():
        app.rows("select set_config('semcache.tenant_id', '7', true)")
        assert app.one("select semcache.current_tenant()") == 7
    assert app.one("select semcache.current_tenant()") is None
