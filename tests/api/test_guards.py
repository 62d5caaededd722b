"""What vectors do not see: guards keep it apart, by default and with the reason shown."""

from __future__ import annotations

import httpx
import pytest
from calls import Cache, new_cache

STORED = "How many pears fill a crate of 20 kg?"


@pytest.mark.parametrize(
    ("stored", "asked", "guard"),
    [
        (STORED, "How many pears fill a crate of 30 kg?", "numbers"),
        ("Is it safe to reheat cooked rice?", "Is it unsafe to reheat cooked rice?", "negation"),
        ("Trains from Oslo to Bergen tomorrow", "Trains from Bergen to Oslo tomorrow", "direction"),
        ("Is A ≠ B in every field?", "Is A = B in every field?", "symbols"),
        ("Where can I store a résumé?", "Where can I store a resume?", "accents"),
        ("How do I find a Polish teacher?", "How do I find a polish teacher?", "letter_case"),
    ],
)
def test_another_question_is_kept_apart_and_explained(cache: Cache, stored: str, asked: str, guard: str) -> None:
    cache.store(stored, "the stored answer")
    found = cache.look(asked, explain=True, similarityThreshold=0)
    assert found["data"] == []
    near = found["explanation"]["neighbours"][0]
    assert near["prompt"] == stored
    fired = {verdict["guard"] for verdict in near["guards"] if verdict["outcome"] != "pass"}
    assert guard in fired
    assert f"guard_{guard}" in near["obstacles"]


def test_a_cache_may_do_without_guards(http: httpx.Client) -> None:
    cache = new_cache(http, guards=False, similarityThreshold=0.9)
    cache.store(STORED, "about ninety")
    assert cache.look("How many pears fill a crate of 30 kg?")["data"], "the vectors alone find them alike"


def test_a_script_that_the_embedder_cannot_read_is_matched_exactly(cache: Cache) -> None:
    stored = cache.http.post(f"{cache.path}/entries", json={"prompt": "阅览室什么时候开门？", "response": "九点。"})
    assert stored.json()["exactOnly"] == "foreign_script"
    assert cache.look("阅览室什么时候开门？")["data"][0]["searchStrategy"] == "exact"
    missed = cache.look("阅览室几点开门？")
    assert missed["data"] == []
    assert missed["reason"] == "foreign_script"


def test_a_text_with_a_character_that_the_embedder_cannot_read_is_matched_exactly(cache: Cache) -> None:
    liked, disliked = "Which mood does 👍 show?", "Which mood does 👎 show?"
    stored = cache.http.post(f"{cache.path}/entries", json={"prompt": liked, "response": "approval"})
    assert (stored.status_code, stored.json()["exactOnly"]) == (201, "text_unreadable")
    assert cache.look(liked)["data"][0]["searchStrategy"] == "exact"
    missed = cache.look(disliked)
    assert (missed["data"], missed["reason"]) == ([], "text_unreadable")
