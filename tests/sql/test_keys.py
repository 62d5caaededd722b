"""create_key and revoke_key."""

from __future__ import annotations

import psycopg
import pytest
from sessions import Session, key


def test_a_key_opens_its_tenant_until_it_is_revoked_once(app: Session) -> None:
    made = app.call("create_key", tenant_id=app.tenant_id, key_hash=key("k"), hint="sk-1")
    (row,) = app.rows("select api_key_id, tenant_id, hint, revoked_at from semcache.api_key")
    assert row == {
        "api_key_id": made["api_key_id"],
        "tenant_id": app.tenant_id,
        "hint": "sk-1",
        "revoked_at": None,
    }
    revoked = app.call("revoke_key", api_key_id=made["api_key_id"])
    assert revoked > made["invalidation_id"]
    assert app.one("select revoked_at is not null from semcache.api_key")
    assert app.call("revoke_key", api_key_id=made["api_key_id"]) is None
    assert app.call("revoke_key", api_key_id=10**9) is None


def test_replicas_forget_all_keys(app: Session) -> None:
    made = app.call("create_key", tenant_id=app.tenant_id, key_hash=key("k"), hint="sk-1")
    (told,) = app.rows(
        "select cache_id, exact_key from semcache.invalidation where invalidation_id = %(n)s",
        n=made["invalidation_id"],
    )
    assert told == {"cache_id": None, "exact_key": None}


def test_a_key_is_made_once_ever(app: Session) -> None:
    made = app.call("create_key", tenant_id=app.tenant_id, key_hash=key("k"), hint="sk-1")
    app.call("revoke_key", api_key_id=made["api_key_id"])
    with pytest.raises(psycopg.Error) as refused:
        app.call("create_key", tenant_id=app.tenant_id, key_hash=key("k"), hint="sk-1")
    assert refused.value.sqlstate == "SC410"
