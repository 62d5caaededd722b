from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb
from sessions import Session, key, observed


def record(app: Session, *observations: dict[str, Any]) -> None:
    app.call(
        "record_observations", tenant_id=app.tenant_id, cache_id=app.cache_id, observations=Jsonb(list(observations))
    )


def test_each_candidate_is_a_row(app: Session) -> None:
    entry_id = app.store()["entry_id"]
    record(app, observed(entry_id), observed(uuid4(), rank=1, verdict="wrong", signals=None))
    first, second = app.rows("select * from semcache.observation order by rank")
    assert (first["tenant_id"], first["cache_id"], first["entry_id"]) == (app.tenant_id, app.cache_id, entry_id)
    assert first["answer_key"] == key("answer")
    assert first["signals"] == pytest.approx([0.9, 0.1])
    assert (second["verdict"], second["signals"]) == ("wrong", None), "a blocked candidate, of an entry that is gone"


@pytest.mark.parametrize("bad", [{"inclusion": 0}, {"inclusion": 1.5}, {"source": "rumour"}, {"policy": "none"}])
def test_what_no_learner_could_use_is_refused(app: Session, bad: dict[str, Any]) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        record(app, observed(uuid4(), **bad))
    assert app.count("observation") == 0


def test_a_prompt_that_text_cannot_hold_is_kept_as_json(app: Session) -> None:
    record(app, observed(uuid4(), prompt="a\ufffd", prompt_verbatim='"a\\u0000"'))
    assert app.one("select prompt_verbatim::text from semcache.observation") == '"a\\u0000"'
