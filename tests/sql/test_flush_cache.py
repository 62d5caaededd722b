from __future__ import annotations

import psycopg
import pytest
from sessions import Session


def test_all_entries_are_of_the_past(app: Session) -> None:
    app.store()
    number = app.call("flush_cache", tenant_id=app.tenant_id, cache_id=app.cache_id)
    assert (
        app.one("select count(*) from semcache.entry e join semcache.cache c using (cache_id) where e.epoch = c.epoch")
        == 0
    )
    (told,) = app.rows("select cache_id, exact_key from semcache.invalidation where invalidation_id = %(n)s", n=number)
    assert told == {"cache_id": app.cache_id, "exact_key": None}
    assert app.one("select action from semcache.audit_log") == "flush_cache"


def test_a_cache_that_is_not_there_is_told(app: Session) -> None:
    with pytest.raises(psycopg.DatabaseError) as gone:
        app.call("flush_cache", tenant_id=app.tenant_id, cache_id=10**9)
    assert gone.value.sqlstate == "SC404"
