from __future__ import annotations

import psycopg
import pytest
from psycopg.types.json import Jsonb
from sessions import Session


def change(app: Session, cache_id: int, policy: dict[str, object]) -> object:
    return app.call("change_policy", tenant_id=app.tenant_id, cache_id=cache_id, policy=Jsonb(policy))


def test_keys_are_merged_and_null_goes_back_to_the_default(app: Session) -> None:
    cache_id = app.cache("faq", {"mode": "exact", "ttlMillis": 5})
    number = change(app, cache_id, {"mode": None, "shadow": True})
    assert app.one("select policy from semcache.cache where cache_id = %(id)s", id=cache_id) == {
        "ttlMillis": 5,
        "shadow": True,
    }
    (told,) = app.rows("select cache_id, exact_key from semcache.invalidation where invalidation_id = %(n)s", n=number)
    assert told == {"cache_id": cache_id, "exact_key": None}


# The cases of RFC 7396, appendix A, whose patch is an object.
@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_patch_is_merged_as_the_standard_says(app: Session, target: object, patch: object, merged: object) -> None:
    assert app.call("merge_patch", target=Jsonb(target), patch=Jsonb(patch)) == merged


@pytest.mark.parametrize("deleted", [True, False])
def test_a_cache_that_is_not_there_is_told(app: Session, deleted: bool) -> None:
    cache_id = app.cache() if deleted else 10**9
    if deleted:
        app.call("delete_cache", tenant_id=app.tenant_id, cache_id=cache_id)
    with pytest.raises(psycopg.DatabaseError) as gone:
        change(app, cache_id, {"shadow": True})
    assert gone.value.sqlstate == "SC404"
