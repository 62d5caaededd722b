"""What look-ups cost Postgres: which index, and how many rows are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from seeded import Asked, Plan, Scope, Seeded, explain, listening, queries
from stored import key

from service.store import entries, jobs
from service.store.database import Database
from service.store.rows import CacheRow, EmbedderId

NEIGHBOURS = 4


async def asked_exactly(db: Database, scope: Scope, number: int) -> Asked:
    with listening() as heard:
        _, found = await entries.find_exact(
            db, scope.cache, scope_key=key("scope"), exact_key=key(str(number)), attributes={}
        )
    assert [row.prompt for row in found] == [f"prompt {number}"]
    return heard[-1]


async def asked_nearby(db: Database, scope: Scope, vector: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Asked:
    with listening() as heard:
        found = await entries.find_neighbours(
            db,
            scope.cache,
            scope.row,
            embedder_id=scope.embedder_id,
            vector=vector,
            attributes={},
            neighbours=NEIGHBOURS,
        )
    assert len(found) == NEIGHBOURS
    return heard[-1]


def few_entries(plan: Plan) -> None:
    """Entries and outputs are looked up for what is served, or nearly so, and by their keys."""
    assert plan.touched("entry") <= 3 * NEIGHBOURS
    assert plan.touched("output") <= NEIGHBOURS
    assert plan.scanned & {"entry", "output", "embedding_1"} == set()


@pytest.mark.parametrize("generic", [False, True])
async def test_an_exact_lookup_reads_one_entry_and_one_answer(seeded: Seeded, db: Database, generic: bool) -> None:
    plan = await explain(db, seeded.huge, await asked_exactly(db, seeded.huge, 17), generic=generic)
    assert plan.indexes("entry") == {"entry_cache_id_exact_key_attributes_key_variant_key"}
    assert plan.indexes("output") == {"output_pkey"}
    assert (plan.touched("entry"), plan.touched("output")) == (1, 1)


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize(
    "page",
    [
        lambda db, cache: entries.page(db, cache, after=None, limit=5, listing="oldest"),
        lambda db, cache: entries.page(db, cache, after=None, limit=5, listing="newest"),
        lambda db, cache: jobs.to_export(db, cache, None, 5),
        lambda db, cache: jobs.to_embed(db, cache, EmbedderId(1), None, 5),
    ],
)
async def test_a_page_of_entries_reads_no_more_than_it_has(
    seeded: Seeded, db: Database, generic: bool, page: Callable[[Database, CacheRow], Awaitable[list[Any]]]
) -> None:
    with listening() as heard:
        assert len(await page(db, seeded.huge.cache)) == 5
    plan = await explain(db, seeded.huge, heard[-1], generic=generic)
    assert plan.indexes("entry_listing") == {"entry_listing"}
    assert plan.touched("entry") <= 2 * 5, "an entry and its usage for each"


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("listing", ["pinned", "quarantined"])
async def test_marked_entries_are_listed_by_their_own_index(
    seeded: Seeded, db: Database, generic: bool, listing: entries.Listing
) -> None:
    with listening() as heard:
        assert await entries.page(db, seeded.huge.cache, after=None, limit=5, listing=listing) == []
    plan = await explain(db, seeded.huge, heard[-1], generic=generic)
    assert plan.touched("entry") == 0
    if generic:  # planned for values that none has, Postgres may not look at all
        assert "entry_marked" in plan.indexes("entry")


@pytest.mark.parametrize("generic", [False, True])
async def test_an_exact_lookup_of_what_is_not_there_reads_no_entry(seeded: Seeded, db: Database, generic: bool) -> None:
    asked = await asked_exactly(db, seeded.huge, 17)
    absent = Asked(asked.statement, {**asked.values, "exact_key": key("absent")})
    assert (await explain(db, seeded.huge, absent, generic=generic)).touched("entry") == 0


@pytest.mark.parametrize("generic", [False, True])
async def test_a_small_scope_is_read_alone_and_once(seeded: Seeded, db: Database, generic: bool) -> None:
    (vector,) = queries(seeded.url, seeded.middling, 1)
    plan = await explain(db, seeded.middling, await asked_nearby(db, seeded.middling, vector), generic=generic)
    assert plan.indexes("embedding") == {"embedding_1_scope_id_idx"}
    assert plan.touched("embedding") == 3_000
    few_entries(plan)


@pytest.mark.parametrize("generic", [False, True])
async def test_an_indexed_scope_is_read_through_its_index(
    indexed: Scope, seeded: Seeded, db: Database, generic: bool
) -> None:
    (vector,) = queries(seeded.url, indexed, 1)
    plan = await explain(db, indexed, await asked_nearby(db, indexed, vector), generic=generic)
    (index,) = plan.indexes("embedding") | plan.indexes("ann_")
    assert index.startswith(f"ann_1_{indexed.row.scope_id}_")
    assert plan.touched("embedding") <= 3 * NEIGHBOURS
    few_entries(plan)


async def test_a_tiny_tenant_beside_a_huge_one_finds_all_that_is_near(
    indexed: Scope, seeded: Seeded, db: Database
) -> None:
    (vector,) = queries(seeded.url, seeded.tiny, 1)
    with listening() as heard:
        found = await entries.find_neighbours(
            db,
            seeded.tiny.cache,
            seeded.tiny.row,
            embedder_id=seeded.tiny.embedder_id,
            vector=vector,
            attributes={},
            neighbours=10,
        )
    assert len({row.entry_id for row in found}) == 10
    assert [row.similarity for row in found] == sorted((row.similarity for row in found), reverse=True)
    plan = await explain(db, seeded.tiny, heard[-1], generic=False)
    assert plan.touched("embedding") == 10, f"the rows of {indexed.cache.tenant_id} are not read"
