import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.json_text import dump, dumps, edit_object, parse

ANY_TEXT = st.text(st.characters())  # lone surrogates and U+0000 included
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_any_json_value_survives_as_valid_utf8(value: Any) -> None:
    raw = dump(value)
    raw.decode("utf-8")
    assert json.loads(raw) == value
    assert dumps(value).encode() == raw
    assert parse(raw) == value
    assert parse(raw.decode()) == value


def test_lone_surrogates_and_nul_are_escaped() -> None:
    assert dump({"a": "\ud83d\u0000é"}) == b'{"a":"\\ud83d\\u0000\\u00e9"}'
    assert parse(b'"\\ud83d\\u0000"') == "\ud83d\u0000"


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**64), 10**40])
def test_integers_of_any_size_stay_integers(number: int) -> None:
    got = parse(dump({"a": [number]}))["a"][0]
    assert (got, type(got)) == (number, int)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "1e999", "{", "'a'", ""])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse(text)


def test_edited_objects_keep_the_bytes_of_the_rest() -> None:
    raw = (
        b'{ "temperature" : 1.0,"n":1e0, "seed": 123456789012345678901234567890,'
        b' "cache": {"ttl": [1, "}"]}, "text": "\\ud83d \\u0000 \xc3\xa9 ,}", "skip_cache":false\n}'
    )
    left = edit_object(raw, drop={"cache", "skip_cache", "absent"})
    assert left == (
        b'{"temperature" : 1.0,"n":1e0,"seed": 123456789012345678901234567890,"text": "\\ud83d \\u0000 \xc3\xa9 ,}"}'
    )


def test_members_are_dropped_in_any_spelling_and_as_often_as_they_stand() -> None:
    assert edit_object(b'{"c\\u0061che":1,"a":2,"cache":3}', drop={"cache"}) == b'{"a":2}'
    assert edit_object(b' {"cache": 1} ', drop={"cache"}) == b"{}"
    assert edit_object(b"{ }") == b"{}"


def test_added_members_replace_those_of_the_same_name() -> None:
    raw = edit_object(b'{"a":1,"b":2}', add={"a": {"x": None}, "c": 3})
    assert raw == b'{"b":2,"a":{"x":null},"c":3}'


@given(st.dictionaries(ANY_TEXT, VALUES, max_size=6), st.sets(ANY_TEXT, max_size=2), st.integers(0, 3))
def test_editing_drops_exactly_what_is_named(body: dict[str, Any], drop: set[str], indent: int) -> None:
    drop |= set(list(body)[:1])
    raw = json.dumps(body, indent=indent or None).encode()
    assert json.loads(edit_object(raw, drop=drop)) == {k: v for k, v in body.items() if k not in drop}
