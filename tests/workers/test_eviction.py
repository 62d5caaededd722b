"""A full cache beside a running service: what is kept is found, and memory never hides what is stored anew."""

from __future__ import annotations

from calls import Cache, new_cache
from running import Service

from service.store.database import Database
from workers import eviction

LIMIT = 10


async def test_a_full_cache_finds_what_it_keeps_and_takes_what_is_new(service: Service, worker: Database) -> None:
    cache = new_cache(service.http, maxEntries=LIMIT)
    for number in range(LIMIT + 5):
        cache.store(f"Where is bollard {number}?", f"At pier {number}.")
    assert [cache.responses(f"Where is bollard {number}?") for number in (12, 3)] == [["At pier 12."], ["At pier 3."]]
    assert len(cache.listed()) == LIMIT + 5, "and by now the lookups are noted"
    await service.runtime.recorder.flush()
    done = await eviction.run_once(worker, 0.9)
    assert (done.caches, done.evicted) == (1, 6)
    kept = cache.listed()
    assert len(kept) == 9
    assert {row["prompt"] for row in kept} >= {"Where is bollard 12?", "Where is bollard 3?"}
    assert all(cache.responses(row["prompt"]) == [row["response"]] for row in kept)
    cache.store("Where is the crane?", "On the quay.")
    assert cache.responses("Where is the crane?") == ["On the quay."]


async def test_an_answer_stored_after_the_eviction_is_not_hidden_by_the_one_in_memory(
    service: Service, worker: Database
) -> None:
    cache = new_cache(service.http, maxEntries=1)
    cache.store("Who keeps the light?", "Anna.")
    assert cache.responses("Who keeps the light?") == ["Anna."], "remembered from here on"
    evict_all_but(cache, "Who rings the bell?")
    await eviction.run_once(worker, 1.0)
    assert [row["prompt"] for row in cache.listed()] == ["Who rings the bell?"]
    cache.store("Who keeps the light?", "Bert.")
    assert cache.responses("Who keeps the light?") == ["Bert."]


def evict_all_but(cache: Cache, prompt: str) -> None:
    """Make this entry the only one that may stay."""
    entry = cache.store(prompt, "Carl.")
    assert cache.http.patch(f"{cache.entries}/{entry}", json={"pinned": True}).status_code == 200
