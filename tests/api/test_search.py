"""What a search finds: exactly, by similarity, inside its scope, while it lives."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from calls import Cache, assert_problem, new_cache

from service.errors import Code
from service.policy.cache_policy import DEFAULT_THRESHOLD

ASKED, CLOSE, FAR = "How do I prune a pear tree?", "How can I prune a pear tree?", "Who wrote this song?"
ANSWER = "In late winter."


def test_a_stored_answer_is_found_by_the_same_prompt(cache: Cache) -> None:
    entry = cache.store(ASKED, ANSWER, attributes={"garden": "red"}, tags=["fruit"], ttlMillis=60_000)
    found = cache.look(ASKED)
    (row,) = found["data"]
    assert found["reason"] == "same_request"
    assert row["id"] == entry
    assert (row["prompt"], row["response"]) == (ASKED, ANSWER)
    assert (row["searchStrategy"], row["similarity"]) == ("exact", 1)
    assert (row["attributes"], row["tags"], row["provenance"]) == ({"garden": "red"}, ["fruit"], "client")
    assert 0 <= row["ageMillis"] < 60_000
    assert 0 < row["ttlMillis"] <= 60_000
    assert row["ageMillis"] + row["ttlMillis"] == pytest.approx(60_000, abs=2)


def test_a_paraphrase_finds_it_by_similarity_and_a_stranger_does_not(cache: Cache) -> None:
    cache.store(ASKED, ANSWER)
    near = cache.look(CLOSE)
    assert near["reason"] == "accepted"
    assert near["data"][0]["searchStrategy"] == "semantic"
    assert near["threshold"] <= near["data"][0]["similarity"] < 1
    far = cache.look(FAR)
    assert (far["data"], far["reason"], far["explanation"]) == ([], "below_threshold", None)


def test_a_caller_can_only_raise_the_threshold(cache: Cache) -> None:
    cache.store(ASKED, ANSWER)
    near = cache.look(CLOSE)["data"][0]["similarity"]
    assert cache.look(CLOSE, similarityThreshold=0)["threshold"] == DEFAULT_THRESHOLD
    assert cache.look(FAR, similarityThreshold=0)["data"] == []
    above = cache.look(CLOSE, similarityThreshold=(near + 1) / 2)
    assert (above["data"], above["reason"]) == ([], "below_threshold")
    assert above["threshold"] == pytest.approx((near + 1) / 2)


def test_threshold_one_means_the_same_text(cache: Cache) -> None:
    cache.store(ASKED, ANSWER)
    missed = cache.look(CLOSE, similarityThreshold=1)
    assert (missed["data"], missed["threshold"]) == ([], 1)
    assert cache.responses(ASKED, similarityThreshold=1) == [ANSWER]
    assert cache.responses(f"  {ASKED}\n", similarityThreshold=1, searchStrategies=["semantic"]) == [ANSWER]


def test_threshold_zero_in_the_policy_serves_the_nearest(cache: Cache) -> None:
    loose = new_cache(cache.http, similarityThreshold=0)
    loose.store(ASKED, ANSWER)
    loose.store("Which bread goes with soup?", "Rye.")
    found = loose.look("Which fruit trees are pruned in spring?")
    assert (found["data"][0]["response"], found["threshold"]) == (ANSWER, 0)


@pytest.mark.parametrize("bad", [1.2, -0.1, "high", "0.9", True, [0.9], {}])
def test_a_threshold_that_is_none_is_refused(cache: Cache, bad: Any) -> None:
    for rest in ("entries/search", "explain"):
        got = cache.post(rest, {"prompt": ASKED, "similarityThreshold": bad})
        assert_problem(got, Code.INVALID_DATA, "similarityThreshold: must be a number from 0 to 1")


def test_strategies_choose_the_tiers(cache: Cache) -> None:
    cache.store(ASKED, ANSWER)
    assert cache.look(ASKED, searchStrategies=["exact"])["data"][0]["searchStrategy"] == "exact"
    assert cache.look(ASKED, searchStrategies=["semantic"])["data"][0]["searchStrategy"] == "semantic"
    only = cache.look(CLOSE, searchStrategies=["exact"])
    assert (only["data"], only["reason"]) == ([], "exact_only")
    for bad in ([], ["fuzzy"], "exact"):
        assert_problem(
            cache.post("entries/search", {"prompt": ASKED, "searchStrategies": bad}),
            Code.INVALID_DATA,
            "searchStrategies",
        )


def test_attributes_filter_by_containment(cache: Cache) -> None:
    cache.store(ASKED, "red", attributes={"garden": "red", "zone": "7"})
    cache.store(ASKED, "blue", attributes={"garden": "blue"})
    for prompt in (ASKED, CLOSE):
        assert cache.responses(prompt, attributes={"garden": "red"}) == ["red"]
        assert cache.responses(prompt, attributes={"zone": "7"}) == ["red"]
        assert cache.responses(prompt, attributes={"garden": "blue"}) == ["blue"]
        assert cache.responses(prompt, attributes={"garden": "blue", "zone": "7"}) == []
        assert cache.responses(prompt, attributes={"garden": "green"}) == []
    assert cache.responses(ASKED) == ["blue"]


SCOPE: dict[str, Any] = {
    "model": "m-1",
    "sampling": {"temperature": 0},
    "system": "Be brief.",
    "history": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}],
    "salt": "s-1",
}
PARTS = [
    ("model", "m-2", "model.name"),
    ("revision", "r-2", "model.revision"),
    ("quantization", "awq", "model.quantization"),
    ("sampling", {"temperature": 0, "max_tokens": 5}, "sampling"),
    ("system", "Be long.", "system"),
    ("history", [{"role": "user", "content": "Goodbye"}, {"role": "assistant", "content": "Bye"}], "history"),
    ("tools", [{"type": "function", "function": {"name": "saw"}}], "tools"),
    ("responseFormat", {"type": "json_object"}, "format"),
    ("salt", "s-2", "salt"),
    ("salt", None, "salt"),
]


@pytest.mark.parametrize(("field", "value", "part"), PARTS)
def test_a_scope_parts_exactly_and_by_similarity_and_explain_names_the_part(
    cache: Cache, field: str, value: Any, part: str
) -> None:
    cache.store(ASKED, ANSWER, scope=SCOPE)
    other = SCOPE | {field: value}
    for prompt in (ASKED, CLOSE):
        assert cache.responses(prompt, scope=SCOPE) == [ANSWER]
        assert cache.responses(prompt, scope=other) == []
        explained = cache.post("explain", {"prompt": prompt, "scope": other})
        (near,) = explained.json()["neighbours"]
        assert near["scopeDiffersIn"] == [part]
        assert "other_scope" in near["obstacles"]


@pytest.mark.parametrize(("share", "others"), [("tenant", [ANSWER]), ("user", [])])
def test_users_share_answers_as_the_policy_says(http: httpx.Client, share: str, others: list[str]) -> None:
    cache = new_cache(http, share=share)
    cache.store(ASKED, ANSWER, scope={"user": "ann"})
    for prompt in (ASKED, CLOSE):
        assert cache.responses(prompt, scope={"user": "ann"}) == [ANSWER]
        assert cache.responses(prompt, scope={"user": "bob"}) == others


@pytest.mark.parametrize("trusted", [True, False])
def test_an_image_by_url_stands_for_its_content_where_the_policy_trusts_it(http: httpx.Client, trusted: bool) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/pear.png"}}
    scope = {"history": [{"role": "user", "content": [image]}, {"role": "assistant", "content": "A pear tree."}]}
    cache = new_cache(http, trustImageUrls=trusted)
    cache.store(ASKED, ANSWER, scope=scope)
    found = cache.look(CLOSE, scope=scope)
    assert (len(found["data"]), found["reason"] == "image_by_url") == ((1, False) if trusted else (0, True))


def test_equal_scopes_agree_whatever_their_spelling(cache: Cache) -> None:
    cache.store(ASKED, ANSWER, scope={"model": "m", "sampling": {"temperature": 0.0, "stop": "x"}})
    same = {"sampling": {"stop": ["x"], "temperature": 0, "top_p": 0.5}, "model": "m", "system": None}
    assert cache.look(ASKED, scope=same)["reason"] == "same_request"


@pytest.mark.parametrize(
    ("scope", "word"),
    [
        ({"modell": "m"}, "modell"),
        ({"model": 5}, "model"),
        ({"history": "before"}, "history"),
        ({"sampling": {"messages": []}}, "messages"),
        ({"sampling": {"temperature": [[[1]]] * 2, "model": "m"}}, "model"),
    ],
)
def test_a_scope_that_cannot_be_is_refused_by_name(cache: Cache, scope: dict[str, Any], word: str) -> None:
    body = {"prompt": ASKED, "scope": scope}
    assert_problem(cache.post("entries/search", body), Code.INVALID_DATA, word)
    assert_problem(cache.post("entries", body | {"response": ANSWER}), Code.INVALID_DATA, word)


def test_the_same_prompt_stored_twice_has_the_second_answer_everywhere(cache: Cache) -> None:
    first = cache.store(ASKED, "old")
    for _ in range(3):
        assert cache.responses(ASKED) == ["old"]
    second = cache.store(ASKED, "new")
    assert cache.responses(ASKED) == ["new"]
    assert cache.responses(CLOSE) == ["new"]
    assert [row["id"] for row in cache.listed()] == [second]
    assert_problem(cache.http.get(f"{cache.entries}/{first}"), Code.ENTRY_NOT_FOUND)


def test_a_text_too_long_for_the_embedder_is_found_exactly_only_and_says_so(cache: Cache) -> None:
    long = "The ledger of the salt barge, line by line. " * 100
    stored = cache.post("entries", {"prompt": long, "response": "Read."})
    assert (stored.status_code, stored.json()["exactOnly"]) == (201, "text_too_long")
    assert cache.responses(long) == ["Read."]
    missed = cache.look(f"{long} again")
    assert (missed["data"], missed["reason"]) == ([], "text_too_long")
    explained = cache.post("explain", {"prompt": long})
    assert (explained.status_code, explained.json()["outcome"]) == (200, "hit")


def test_an_exact_only_cache_embeds_nothing_and_says_so(cache: Cache) -> None:
    exact = new_cache(cache.http, mode="exact")
    stored = exact.post("entries", {"prompt": ASKED, "response": ANSWER})
    assert stored.json()["exactOnly"] == "exact_only"
    assert exact.responses(ASKED) == [ANSWER]


def test_explain_says_what_would_change_the_verdict(cache: Cache) -> None:
    empty = cache.post("explain", {"prompt": ASKED}).json()
    assert (empty["outcome"], empty["neighbours"]) == ("miss", [])
    entry = cache.store(ASKED, ANSWER)
    cache.store("Which bread goes with soup?", "Rye.")
    said = cache.post("explain", {"prompt": CLOSE}).json()
    assert (said["outcome"], said["entryId"]) == ("semantic_hit", entry)
    assert said["neighbours"][0]["id"] == entry
    assert said["neighbours"][0]["obstacles"] == []
    assert said["neighbours"][1]["obstacles"] == ["below_floor", "below_threshold"]
    assert said["similarity"] == cache.look(CLOSE)["data"][0]["similarity"]
    strict = cache.post("explain", {"prompt": CLOSE, "similarityThreshold": 0.9999}).json()
    assert strict["outcome"] == "miss"
    assert f"at most {str(said['similarity'])[:6]} " in strict["wouldChange"], "rounded down, or it would stay a miss"
    assert len(cache.post("explain", {"prompt": CLOSE, "limit": 1}).json()["neighbours"]) == 1
    inline = cache.look(CLOSE, explain=True)["explanation"]
    assert inline["neighbours"][0]["id"] == entry
    assert cache.http.get(f"{cache.path}/stats").json()["lookups"] == 2, "explaining counts as no lookup"


def would_change(cache: Cache, prompt: str, **fields: Any) -> str:
    return str(cache.post("explain", {"prompt": prompt, **fields}).json()["wouldChange"])


def test_explain_is_true_of_a_prompt_that_is_matched_exactly(cache: Cache) -> None:
    long = "The ledger of the salt barge, line by line. " * 100
    cache.store(long, "Read.")
    assert "(text_too_long)" in would_change(cache, f"{long} again")
    assert "no threshold would make it a miss" in would_change(cache, long)
    exact = new_cache(cache.http, mode="exact")
    exact.store(ASKED, ANSWER)
    assert "(exact_only)" in would_change(exact, CLOSE)


def test_explain_is_true_of_a_cache_that_is_off(cache: Cache) -> None:
    cache.store(ASKED, ANSWER)
    cache.http.patch(cache.path, json={"policy": {"mode": "off"}})
    assert "mode is off" in would_change(cache, ASKED)


def test_explain_speaks_of_the_entry_that_was_served_not_of_the_nearest(cache: Cache) -> None:
    cache.store(ASKED, ANSWER)
    cache.store(CLOSE, "Elsewhere.", scope={"system": "Another."})
    said = cache.post("explain", {"prompt": CLOSE}).json()
    assert said["neighbours"][0]["scopeDiffersIn"] == ["system"]
    assert f"above {said['similarity']:.4f}" in said["wouldChange"]


def test_no_threshold_helps_below_the_floor(cache: Cache) -> None:
    low = new_cache(cache.http, similarityThreshold=0.1, guards=False)
    low.store("Which bread goes with soup?", "Rye.")
    said = low.post("explain", {"prompt": ASKED}).json()
    assert "below_floor" in said["neighbours"][0]["obstacles"]
    assert "threshold of at most" not in said["wouldChange"]


def test_a_threshold_of_one_wants_the_same_text(cache: Cache) -> None:
    cache.store(ASKED, ANSWER)
    said = cache.post("explain", {"prompt": CLOSE, "similarityThreshold": 1}).json()
    assert said["neighbours"][0]["obstacles"] == ["other_text"]
    assert "threshold of at most 0." in said["wouldChange"]
