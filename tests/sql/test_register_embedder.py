from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sessions import Session


def register(app: Session, name: str = "model", dimensions: int = 4, revision: str = "r1") -> int:
    return int(
        app.call(
            "register_embedder",
            kind="remote",
            name=name,
            revision=revision,
            dimensions=dimensions,
            max_tokens=None,
            probe="{0.5,0.5}",
        )
    )


def test_a_generation_is_made_once(app: Session) -> None:
    assert register(app) == register(app)
    assert len({register(app), register(app, revision="r2"), register(app, dimensions=8)}) == 3


def test_it_has_a_partition_for_its_length_that_nobody_reads_directly(app: Session) -> None:
    embedder_id = register(app)
    (partition,) = app.rows(
        "select relrowsecurity, relforcerowsecurity, obj_description(oid, 'pg_class') as comment "
        f"from pg_catalog.pg_class where relname = 'embedding_{embedder_id}'"
    )
    assert partition == {
        "relrowsecurity": True,
        "relforcerowsecurity": True,
        "comment": "Vectors of model, 4 dimensions.",
    }
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.rows(f"select from semcache.embedding_{embedder_id}")
    app.store(embedder_id=embedder_id, vector="[1,0,0,0]")
    assert app.one("select tableoid::regclass::text from embedding") == f"embedding_{embedder_id}"


def test_services_that_start_together_agree(app: Session, session: Callable[..., Session]) -> None:
    others = [session() for _ in range(3)]
    with ThreadPoolExecutor() as pool:
        with app.holding():
            mine = register(app)
            theirs = [pool.submit(register, other) for other in others]
            for other in others:
                app.waits(other)
        assert {each.result() for each in theirs} == {mine}


def test_a_length_that_no_vector_has_is_refused(app: Session) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        register(app, dimensions=4001)
