from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from sessions import Session


def test_a_scope_is_made_once_with_its_model_and_sampling_config(app: Session) -> None:
    assert app.scope() == app.scope()
    (row,) = app.rows("select s.parts, m.name from semcache.scope s join semcache.model m using (model_id)")
    assert row == {"parts": {"system": "none"}, "name": "m"}
    assert (app.count("scope"), app.count("model"), app.count("sampling_config")) == (1, 1, 1)


def test_scopes_share_models_and_configs(app: Session) -> None:
    assert app.scope("a") != app.scope("b")
    assert (app.count("scope"), app.count("model"), app.count("sampling_config")) == (2, 1, 1)


def test_each_cache_has_its_own(app: Session) -> None:
    assert app.scope() != app.scope(cache_id=app.cache())


def test_each_tenant_has_its_own_of_everything(app: Session, session: Callable[..., Session]) -> None:
    other = session("other")
    assert app.scope() != other.scope()
    assert (app.count("model"), other.count("model")) == (1, 1)


def test_a_cache_that_is_gone_is_told(app: Session) -> None:
    with pytest.raises(psycopg.DatabaseError) as gone:
        app.scope(cache_id=10**9)
    assert gone.value.sqlstate == "SC404"
