"""An approximate index finds what an exact scan finds, also where the nearest entries are dead."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
from seeded import Scope, Seeded, Vector, queries

from service.store import entries
from service.store.database import Database
from service.store.rows import Found

FLOOR = 0.9
NEAREST = """
select v.entry_id
from semcache.embedding v
where v.scope_id = %s
order by v.vector <#> %s::halfvec
limit %s
"""


async def neighbours(db: Database, scope: Scope, vector: Vector) -> list[Found]:
    return await entries.find_neighbours(
        db, scope.cache, scope.row, embedder_id=scope.embedder_id, vector=vector, attributes={}, neighbours=4
    )


async def test_the_nearest_true_neighbour_is_found(indexed: Scope, seeded: Seeded, db: Database) -> None:
    exact = indexed.indexed(None)
    asked = queries(seeded.url, indexed, 100)
    truth = [(await neighbours(db, exact, vector))[0] for vector in asked]
    assert min(found.similarity for found in truth) > FLOOR, "every query has a true neighbour"
    seen = [(await neighbours(db, indexed, vector))[0] for vector in asked]
    recall = np.mean([a.entry_id == b.entry_id for a, b in zip(truth, seen, strict=True)])
    assert recall >= 0.99


@pytest.fixture
def dead_around(indexed: Scope, seeded: Seeded) -> Iterator[Vector]:
    """A query whose 100 nearest entries have expired."""
    (vector,) = queries(seeded.url, indexed, 1)
    with psycopg.connect(seeded.url, autocommit=True) as connection:
        ids = [
            entry_id
            for (entry_id,) in connection.execute(NEAREST, (indexed.row.scope_id, str(vector.tolist()), 100)).fetchall()
        ]
        connection.execute(
            "update semcache.entry set expires_at = now() - interval '1 minute' where entry_id = any (%s)", (ids,)
        )
        yield vector
        connection.execute("update semcache.entry set expires_at = null where entry_id = any (%s)", (ids,))


async def test_dead_neighbours_do_not_hide_a_living_one(dead_around: Vector, indexed: Scope, db: Database) -> None:
    living = await neighbours(db, indexed, dead_around)
    exact = await neighbours(db, indexed.indexed(None), dead_around)
    assert len(living) == 4
    assert living[0].similarity == pytest.approx(exact[0].similarity, abs=0.02)
