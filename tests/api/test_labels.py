"""What callers of the data API teach the cache: by the answers that they store after a miss, and by feedback."""

from __future__ import annotations

from typing import Any

import pytest
from calls import Cache, new_cache
from observing import observed, settled
from running import Service

FIRST, NEAR = "How long may I park in the old town?", "How long can I park in the old town?"
TWO, ALSO_TWO, THREE = (
    "You may park for two hours.",
    "You may park there for two hours.",
    "You may park for three hours.",
)


@pytest.fixture
def cache(shared_service: Service) -> Cache:
    return new_cache(shared_service.http, similarityThreshold=0.999)


@pytest.mark.parametrize(("fresh", "verdict"), [(ALSO_TWO, "correct"), (THREE, "wrong")])
async def test_an_answer_stored_after_a_miss_is_compared_with_the_near_ones(
    cache: Cache, shared_service: Service, fresh: str, verdict: str
) -> None:
    near = cache.store(FIRST, TWO)
    assert cache.responses(NEAR) == []
    cache.store(NEAR, fresh)
    (row,) = await observed(shared_service, cache.name, 1)
    assert (row["entry_id"].hex, row["verdict"], row["source"]) == (near, verdict, "exploration")
    assert (row["policy"], row["rank"], row["inclusion"], row["served"]) == ("threshold", 0, 1.0, False)
    cache.store(NEAR, THREE)
    await settled(shared_service)
    await observed(shared_service, cache.name, 1)  # one miss is one label


async def test_a_search_in_shadow_finds_nothing_and_is_a_label(shared_service: Service) -> None:
    cache = new_cache(shared_service.http, similarityThreshold=0.9, shadow=True)
    near = cache.store(FIRST, TWO)
    for prompt in (FIRST, NEAR):
        found = cache.look(prompt)
        assert (found["data"], found["reason"]) == ([], "shadow")
    cache.store(NEAR, THREE)
    (row,) = await observed(shared_service, cache.name, 1)
    assert (row["entry_id"].hex, row["verdict"], row["source"], row["inclusion"]) == (near, "wrong", "shadow", 1.0)


async def test_a_store_that_no_miss_preceded_says_nothing(cache: Cache, shared_service: Service) -> None:
    cache.store(FIRST, TWO)
    cache.store(NEAR, THREE)
    assert cache.responses(FIRST) == [TWO]
    cache.store(FIRST, THREE)
    await settled(shared_service)
    await observed(shared_service, cache.name, 0)


@pytest.mark.parametrize("verdict", ["correct", "wrong", "stale"])
async def test_feedback_with_its_prompt_shows_what_the_policy_saw(
    cache: Cache, shared_service: Service, verdict: str
) -> None:
    entry = cache.store(FIRST, TWO)
    cache.store("Where may I park in the old town?", "On the market.")
    assert cache.post("feedback", {"entryId": entry, "verdict": verdict, "prompt": NEAR}).status_code == 202
    (row,) = await observed(shared_service, cache.name, 1)
    assert (row["verdict"], row["source"], row["inclusion"], row["prompt"]) == (verdict, "feedback", None, NEAR)
    assert (row["rank"], row["served"], row["policy"]) == (0, True, "threshold")
    assert row["similarity"] > 0.9
    assert row["signals"] is not None
    assert row["embedder_id"] is not None
    assert cache.responses(FIRST) == ([TWO] if verdict == "correct" else [])


@pytest.mark.parametrize(
    "said", [{}, {"prompt": "What is the capital of Peru?"}, {"prompt": " "}, {"prompt": "\ud83d"}]
)
async def test_feedback_acts_where_the_policy_saw_nothing(
    cache: Cache, shared_service: Service, said: dict[str, Any]
) -> None:
    entry = cache.store(FIRST, TWO)
    assert cache.post("feedback", {"entryId": entry, "verdict": "wrong", **said}).status_code == 202
    (row,) = await observed(shared_service, cache.name, 1)
    assert (row["entry_id"].hex, row["verdict"], row["signals"]) == (entry, "wrong", None)
    assert cache.responses(FIRST) == []
