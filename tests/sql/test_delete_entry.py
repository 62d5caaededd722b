from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import psycopg
import pytest
from sessions import Session, key


def delete(app: Session, entry_id: UUID) -> object:
    return app.call("delete_entry", tenant_id=app.tenant_id, cache_id=app.cache_id, entry_id=entry_id)


def test_it_goes_with_everything_and_replicas_are_told(app: Session) -> None:
    entry_id = app.store("first")["entry_id"]
    number = delete(app, entry_id)
    assert [app.count(table) for table in ("entry", "embedding", "output", "entry_usage")] == [0, 0, 0, 0]
    told = app.one("select exact_key from semcache.invalidation where invalidation_id = %(n)s", n=number)
    assert told == key("first")


def test_one_that_is_not_there_or_anothers_is_told(app: Session, session: Callable[..., Session]) -> None:
    entry_id = app.store()["entry_id"]
    for whose, which in ((app, uuid4()), (session("other"), entry_id)):
        with pytest.raises(psycopg.DatabaseError) as gone:
            delete(whose, which)
        assert gone.value.sqlstate == "SC405"
    assert app.count("entry") == 1
