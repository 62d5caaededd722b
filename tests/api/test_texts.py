"""Whatever text JSON allows goes in and comes out unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from calls import Cache, assert_problem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.errors import Code

TEXTS = {
    "U+0000": "before\x00after",
    "half of a pair": "half of a pair: \ud83d, end",
    "the other half": "\udc00",
    "escape in text": "\\ud83d \\u0000 \\",
    "emoji with joiners": "\U0001f469\u200d\U0001f52c and \U0001f3f4\u200d\u2620\ufe0f",
    "right to left": "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd, \u202emixed\u202c",
    "not normalised": "e\u0301 \u00e9 \ufb01",
    "line ends": "\ufeffone\r\ntwo\u2028three\tfour\x85",
    "white space": " \t padded \n ",
    "JSON in text": '{"a": "\\"}]", "b": [null]}',
    "percent and braces": "100 % {scope_id} %(tenant_id)s ; --",
    "noncharacter": "\ufffe\uffff\U0010ffff",
    "control characters": "".join(map(chr, range(32))),
    "200 KB": "The ledger of the salt barge, line by line. " * 4700,
    "one long word": "x" * 200_000,
}
texts = st.text(st.characters(), min_size=1, max_size=40) | st.text("\x00\ud800\udc00\\u 0", min_size=1, max_size=8)
anything = texts.map(lambda text: str(json.loads(json.dumps(text))))  # two halves side by side are one character


@pytest.mark.parametrize("text", list(TEXTS.values()), ids=list(TEXTS))
def test_any_text_comes_back_as_it_was(cache: Cache, text: str) -> None:
    prompt, response = f"Repeat what follows. {text}", f"I read: {text}"
    scope = {"system": text[:1000], "model": text[:1000], "sampling": {"stop": [text[:1000]]}}
    entry = cache.store(prompt, response, scope=scope)
    for _ in range(2):
        (row,) = cache.look(prompt, scope=scope)["data"]
        assert (row["id"], row["prompt"], row["response"]) == (entry, prompt, response)
    assert (cache.read(entry)["prompt"], cache.read(entry)["response"]) == (prompt, response)
    assert [(row["prompt"], row["response"]) for row in cache.listed()] == [(prompt, response)]
    assert cache.responses(prompt, scope=scope | {"system": "other"}) == []
    assert cache.post("feedback", {"entryId": entry, "verdict": "correct", "prompt": prompt}).status_code == 202
    explained = cache.post("explain", {"prompt": prompt, "scope": scope})
    assert (explained.status_code, explained.json()["entryId"]) == (200, entry)
    assert cache.send("DELETE", "entries", {"model": text[:1000]}).json() == {"deletedEntriesCount": 1}


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prompt=anything, response=anything | st.just(""), system=anything)
def test_no_text_is_lost(cache: Cache, prompt: str, response: str, system: str) -> None:
    """Answers are kept apart by the system prompt, so that an example cannot find another one's."""
    stored = cache.post("entries", {"prompt": prompt, "response": response, "scope": {"system": system}})
    assert stored.status_code == 201, stored.text
    (row,) = cache.look(prompt, scope={"system": system}, searchStrategies=["exact"])["data"]
    assert (row["prompt"], row["response"]) == (prompt, response)


names = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tags=st.lists(words, max_size=3), attributes=st.dictionaries(names, words, max_size=3))
def test_words_are_found_by_themselves(cache: Cache, tags: list[str], attributes: dict[str, str]) -> None:
    entry = cache.store("Which word?", "This.", tags=tags, attributes=attributes)
    assert (cache.read(entry)["tags"], cache.read(entry)["attributes"]) == (tags, attributes)
    assert entry in [row["id"] for row in cache.look("Which word?", attributes=attributes)["data"]]
    for chosen in ({"tags": tags[:1]}, {"attributes": attributes}):
        if any(chosen.values()):
            counted = cache.send("DELETE", "entries", {**chosen, "dryRun": True}).json()
            assert counted["deletedEntriesCount"] >= 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tags", [""]),
        ("tags", ["a\x00"]),
        ("tags", ["\ud800"]),
        ("tags", ["x" * 501]),
        ("tags", "fruit"),
        ("tags", [1]),
        ("attributes", {"a b": "x"}),
        ("attributes", {"": "x"}),
        ("attributes", {"é": "x"}),
        ("attributes", {"x" * 65: "x"}),
        ("attributes", {"a": "\x00"}),
        ("attributes", {"a": "\ud800"}),
        ("attributes", {"a": "x" * 501}),
        ("attributes", {"a": 1}),
        ("attributes", {"a": None}),
        ("attributes", ["a"]),
        ("prompt", ""),
        ("prompt", None),
        ("response", None),
        ("scope", "model"),
    ],
)
def test_words_that_cannot_be_are_refused_by_field(cache: Cache, field: str, value: Any) -> None:
    got = cache.post("entries", {"prompt": "x", "response": "y", field: value})
    assert_problem(got, Code.INVALID_DATA, field)


def test_a_prompt_of_white_space_is_found_exactly(cache: Cache) -> None:
    stored = cache.post("entries", {"prompt": " \n", "response": "Nothing."})
    assert stored.json()["exactOnly"] == "no_text"
    assert cache.responses(" \n") == ["Nothing."]
    assert cache.look("  ")["reason"] == "no_text"
