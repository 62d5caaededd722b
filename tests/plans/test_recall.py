"""An approximate index finds what an exact scan finds, also where the nearest entries are dead."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import numpy as np
import psycopg
import pytest
from seeded import DIMENSIONS, Scope, Seeded, Vector, queries

from service.store import entries
from service.store.database import Database, Limits
from service.store.index_care import Index, try_recall
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
    exact = indexed.indexed(yes=False)
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
    exact = await neighbours(db, indexed.indexed(yes=False), dead_around)
    assert len(living) == 4
    assert living[0].similarity == pytest.approx(exact[0].similarity, abs=0.02)


async def test_the_canary_tells_an_index_that_finds_little(indexed: Scope, seeded: Seeded, worker: Database) -> None:
    """With one probe of many lists, some two of a hundred miss the nearest: of a thousand, surely one."""
    index = Index(indexed.row.scope_id, indexed.embedder_id, DIMENSIONS)
    good = await try_recall(worker, index, after=UUID(int=0), sample=100, floor=0.0)
    assert good is not None
    assert good > 0.95
    if indexed == seeded.huge.indexed(yes=True):
        limits = Limits(pool_min=1, pool_max=1, timeout=30.0, probes=1)
        door = Database(seeded.url, limits, role="semcache_worker")
        await door.open()
        poor = await try_recall(door, index, after=UUID(int=0), sample=1000, floor=0.0)
        await door.close()
        assert poor is not None
        assert poor < 1.0
    (row,) = [x for x in shown(seeded) if x[0] == indexed.row.scope_id]
    assert row[1] is not None
    assert await try_recall(worker, index, after=UUID(int=0), sample=100, floor=1.1) is None


def shown(seeded: Seeded) -> list[tuple[int, float]]:
    with psycopg.connect(seeded.url) as connection:
        return connection.execute("select scope_id, recall from semcache.index_health").fetchall()
