"""The canonical form: one byte string for each JSON value, and never one for two."""

import json
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.errors import Code, SemcacheError
from service.identity.canonical import canonical_json, digest, hexdigest

law = settings(deadline=None, max_examples=300)

any_text = st.text(st.characters(exclude_categories=()), max_size=8)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
any_json = st.recursive(
    st.none() | st.booleans() | numbers | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)

# Few and confusable values, so that two draws often are equal or nearly so.
confusable_text = st.sampled_from(
    [
        "",
        "0",
        "1",
        "1.0",
        "null",
        "a",
        "A",
        "\ud83d\ude00",
        "\U0001f600",
        "\\ud83d\\ude00",
        '"',
        '","',
        "\x00",
        "e+",
        ".0",
    ]
)
confusable = st.recursive(
    st.sampled_from([None, True, False, 0, 0.0, -0.0, 1, 1.0, 10**16, 1e16, 1.5, 2**53 + 1, float(2**53)])
    | confusable_text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(confusable_text, inner, max_size=2),
    max_leaves=4,
)


def equal(a, b):
    """Equality of JSON values, written without any encoding: numbers by value, everything else by kind."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return a == b


@law
@given(confusable, confusable)
@example("\ud83d\ude00", "\U0001f600")
@example("\ud83d", "\\ud83d")
@example({"a": 1, "b": 2}, {"b": 2.0, "a": 1.0})
@example(["a", "b"], ["a,b"])
@example([[], []], [[[]]])
def test_two_values_agree_exactly_when_they_are_equal(a, b):
    assert (canonical_json(a) == canonical_json(b)) == equal(a, b)


@law
@given(any_json)
def test_the_form_is_utf8_json_of_the_same_value(value):
    form = canonical_json(value)
    assert equal(json.loads(form.decode("utf-8")), json.loads(json.dumps(value)))


@law
@given(any_json)
def test_the_form_of_the_form_is_the_form(value):
    assert canonical_json(json.loads(canonical_json(value))) == canonical_json(json.loads(json.dumps(value)))


@law
@given(st.dictionaries(any_text, any_json, max_size=5), st.randoms())
def test_key_order_changes_nothing(value, random):
    keys = list(value)
    random.shuffle(keys)
    assert canonical_json({key: value[key] for key in keys}) == canonical_json(value)


@law
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_agrees_with_every_spelling_of_it(number):
    spellings = [repr(number), f"{number:.17e}", f"{number:.17E}"]
    if number.is_integer():
        spellings.append(str(int(number)))
    assert {canonical_json(json.loads(s)) for s in spellings} == {canonical_json(number)}


def test_spelling_of_numbers_and_order_of_keys_by_code_point():
    assert canonical_json({"b": [1.0, 1e0, -0.0, 1e22, 0.5], "a": 10**30}) == (
        b'{"a":1000000000000000000000000000000,"b":[1,1,0,10000000000000000000000,0.5]}'
    )
    assert canonical_json({"\uffff": 1, "\U00010000": 2, "Z": 3, "a": 4}) == (
        '{"Z":3,"a":4,"\uffff":1,"\U00010000":2}'.encode()
    )


def test_integers_beyond_floats_stay_exact():
    assert canonical_json(2**64) != canonical_json(2**64 + 1)
    assert canonical_json(float(2**64)) == canonical_json(2**64)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, {1, 2}, b"x", {("a",): 1}])
def test_what_is_no_json_is_refused(bad):
    with pytest.raises(SemcacheError) as caught:
        canonical_json({"field": [bad]})
    assert caught.value.code is Code.INVALID_DATA


def test_an_integer_too_long_to_spell_is_refused():
    with pytest.raises(SemcacheError, match="finite numbers"):
        canonical_json(10**5000)


def test_nesting_too_deep_is_refused_by_name_and_not_by_a_crash():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(SemcacheError, match="nesting"):
        canonical_json(deep)


def test_a_digest_is_sha256_of_the_form():
    assert hexdigest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert digest({}).hex() == hexdigest({})
