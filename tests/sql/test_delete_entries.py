from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from sessions import Session, key


def delete(app: Session, *, dry_run: bool = False, **narrow: Any) -> Any:
    everything = {"attributes": Jsonb({}), "tags": [], "model": None, "older_than": None}
    return app.call(
        "delete_entries",
        tenant_id=app.tenant_id,
        cache_id=app.cache_id,
        dry_run=dry_run,
        **(everything | narrow),
    )


@pytest.fixture
def four(app: Session) -> Session:
    """Entries a and b with tags, c with an attribute, d of another model; a is a day old."""
    app.store("a", tags=["red", "blue"])
    app.store("b", tags=["blue"])
    app.store("c", attributes=Jsonb({"team": "x", "tier": "1"}), attributes_key=key("x"))
    app.store("d", scope_id=app.scope("other", model="n"))
    app.rows("update entry set created_at = now() - interval '1 day' where prompt = 'a' returning 1")
    return app


@pytest.mark.parametrize(
    ("narrow", "left"),
    [
        ({"tags": ["blue"]}, "cd"),
        ({"tags": ["red", "green"]}, "bcd"),
        ({"attributes": Jsonb({"team": "x"})}, "abd"),
        ({"model": "n"}, "abc"),
        ({"tags": ["blue"], "older_than": datetime.now(UTC)}, "bcd"),
        ({"tags": ["green"]}, "abcd"),
    ],
)
def test_a_dry_run_counts_what_then_goes(four: Session, narrow: dict[str, Any], left: str) -> None:
    if "older_than" in narrow:
        narrow = narrow | {"older_than": four.one("select now() - interval '1 hour'")}
    counted = delete(four, dry_run=True, **narrow)
    assert counted == {"deleted": 4 - len(left), "invalidation_id": None}
    assert four.count("entry") == 4
    deleted = delete(four, **narrow)
    assert deleted["deleted"] == counted["deleted"]
    assert [row["prompt"] for row in four.rows("select prompt from entry order by prompt")] == list(left)
    assert four.count("output") == four.count("embedding") == len(left)
    told = four.rows(
        "select cache_id, exact_key from invalidation where invalidation_id = %(n)s", n=deleted["invalidation_id"]
    )
    assert told == [{"cache_id": four.cache_id, "exact_key": None}]


def test_a_store_is_over_before_a_delete_looks(app: Session, session: Callable[..., Session]) -> None:
    other = session()
    with ThreadPoolExecutor(1) as pool:
        with app.holding():
            app.store("a", tags=["blue"])
            deleting = pool.submit(delete, other, tags=["blue"])
            app.waits(other)
        assert deleting.result()["deleted"] == 1
    assert app.count("entry") == 0


def test_dead_rows_go_uncounted(four: Session) -> None:
    four.rows("update entry set expires_at = now() where prompt = 'a' returning 1")
    assert delete(four, dry_run=True, tags=["blue"])["deleted"] == 1
    assert delete(four, tags=["blue"])["deleted"] == 1
    assert four.count("entry") == 2


def test_an_empty_filter_is_refused(four: Session) -> None:
    for dry_run in (True, False):
        with pytest.raises(psycopg.DatabaseError) as refused:
            delete(four, dry_run=dry_run)
        assert refused.value.sqlstate == "SC001"
    assert four.count("entry") == 4


def test_other_caches_and_tenants_are_left_alone(four: Session) -> None:
    other = four.cache()
    four.store("a", cache_id=other, tags=["blue"])
    delete(four, tags=["blue"])
    assert four.rows("select cache_id from entry where 'blue' = any (tags)") == [{"cache_id": other}]
