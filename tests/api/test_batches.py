"""Batches: every item in its place, with its own status."""

from __future__ import annotations

from typing import Any

from calls import Cache, assert_problem

from service.errors import Code


def test_a_batch_of_nothing_is_refused(cache: Cache) -> None:
    assert_problem(cache.post("entries/batch", {"entries": []}), Code.INVALID_DATA, "entries")
    assert_problem(cache.post("entries/batch-search", {"searches": []}), Code.INVALID_DATA, "searches")


def test_every_item_of_a_batch_has_its_own_status_in_its_own_place(cache: Cache) -> None:
    good = [{"prompt": f"Which seed goes in row {n}?", "response": f"seed {n}"} for n in range(40)]
    bad: list[dict[str, Any]] = [
        {"prompt": "x"},
        {"prompt": "x", "response": "y", "query": 1},
        {"prompt": "x", "response": "y", "scope": {"modell": "m"}},
        {"prompt": "x", "response": "y", "ttlMillis": 0},
    ]
    items = cache.post("entries/batch", {"entries": [*good[:20], *bad, *good[20:]]})
    assert items.status_code == 200
    rows = items.json()["data"]
    assert [row["status"] for row in rows] == [201] * 20 + [422] * 4 + [201] * 20
    words = ["response: Field required", "query: there is no such field", "modell", "ttlMillis"]
    for row, word in zip(rows[20:24], words, strict=True):
        assert word in row["error"]["detail"]
        assert row["error"]["code"] == "invalid_data"
        assert row["result"] is None
    searches = [{"prompt": item["prompt"]} for item in good] + [{"prompt": "Who built the greenhouse?"}, {"prompt": ""}]
    found = cache.post("entries/batch-search", {"searches": searches}).json()["data"]
    assert [row["status"] for row in found] == [200] * 41 + [422]
    answers = [[hit["response"] for hit in row["result"]["data"]] for row in found[:41]]
    assert answers == [[item["response"]] for item in good] + [[]]


def test_of_equal_prompts_in_one_batch_the_last_one_counts(cache: Cache) -> None:
    """The first answers are long and take longer, so that stores at once would end in another order."""
    prompts = [f"Which bulb goes in pot {n}?" for n in range(4)]
    texts = ["long " * 200_000, "long " * 100_000, "short"]
    entries = [{"prompt": prompt, "response": text} for text in texts for prompt in prompts]
    rows = cache.post("entries/batch", {"entries": entries}).json()["data"]
    assert {row["status"] for row in rows} == {201}
    assert [cache.responses(prompt) for prompt in prompts] == [["short"]] * 4
