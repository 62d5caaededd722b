"""A cache's policy: its defaults, its rules, and what it lets callers ask for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from service.errors import Code, SemcacheError
from service.policy.cache_policy import DEFAULT_THRESHOLD, MAX_TTL_MS, CachePolicy, read_policy

lifetimes = st.none() | st.integers(1, MAX_TTL_MS)


def test_no_keys_give_the_defaults() -> None:
    policy = read_policy({})
    assert (policy.similarity_threshold, policy.mode, policy.ttl_millis) == (DEFAULT_THRESHOLD, "semantic", None)
    assert read_policy(policy.model_dump(by_alias=True)) == policy


def test_changes_lie_over_the_base_and_none_goes_back_to_the_default() -> None:
    base = {"similarityThreshold": 0.9, "mode": "exact"}
    assert read_policy({"mode": None}, base) == read_policy({"similarityThreshold": 0.9})
    assert read_policy({"mode": "off"}, base) == read_policy({"similarityThreshold": 0.9, "mode": "off"})
    assert base == {"similarityThreshold": 0.9, "mode": "exact"}


@pytest.mark.parametrize("name", list(CachePolicy.model_fields))
@pytest.mark.parametrize("value", [[], {"a": 1}, float("nan"), float("inf"), -1, "nothing"])
def test_no_key_takes_a_value_of_another_kind(name: str, value: Any) -> None:
    with pytest.raises(SemcacheError, match=to_camel(name)) as refused:
        read_policy({to_camel(name): value})
    assert refused.value.code is Code.INVALID_DATA


@pytest.mark.parametrize("name", ["thresholdd", "similarity_threshold", "", "\ud800"])
@pytest.mark.parametrize("value", [1, None])
def test_an_unknown_key_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(SemcacheError) as refused:
        read_policy({name: value})
    assert refused.value.code is Code.INVALID_DATA


@pytest.mark.parametrize("name", ["maxEntries", "maxBytes"])
def test_a_limit_is_one_that_the_database_can_count_to(name: str) -> None:
    assert read_policy({name: 2**53})
    with pytest.raises(SemcacheError, match=name):
        read_policy({name: 2**53 + 1})


@pytest.mark.parametrize("sampled", ["variants(0)", "variants(21)", "variants(\uff13)", "variants(3)\n"])
def test_variants_are_counted_in_plain_digits(sampled: str) -> None:
    with pytest.raises(SemcacheError, match=r"policy\.sampled"):
        read_policy({"sampled": sampled})


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(SemcacheError, match=r"policy\.mode: .*; policy\.ttlMillis: "):
        read_policy({"mode": "loose", "ttlMillis": 0})


@given(lifetimes, lifetimes, lifetimes)
def test_a_lifetime_never_exceeds_the_longest(default: int | None, longest: int | None, asked: int | None) -> None:
    ttl = read_policy({"ttlMillis": default, "maxTtlMillis": longest}).ttl(asked)
    wanted = asked if asked is not None else default
    if longest is None:
        assert ttl == wanted
    else:
        assert ttl == (longest if wanted is None else min(wanted, longest))


@given(st.floats(1, MAX_TTL_MS), st.booleans(), lifetimes, st.integers(1, MAX_TTL_MS))
def test_an_adapted_lifetime_stays_within_its_bounds(
    ttl: float, same: bool, longest: int | None, shortest: int
) -> None:
    policy = read_policy({"maxTtlMillis": longest, "minTtlMillis": shortest})
    most = longest or 86_400_000
    assert min(shortest, most) <= policy.adapted_ttl(ttl, same=same, uses=0) <= most


def test_a_lifetime_grows_the_less_the_more_its_answer_is_used_and_the_earlier_it_is_looked_at() -> None:
    policy = read_policy({"maxTtlMillis": MAX_TTL_MS})
    ttls = [policy.adapted_ttl(600_000, same=True, uses=uses) for uses in (0, 1, 3, 599)]
    assert ttls == [1_200_000, 900_000, 750_000, 601_000]
    assert policy.adapted_ttl(600_000, same=True, uses=0, part=0.1) == pytest.approx(660_000, abs=1)
    assert policy.adapted_ttl(800_000, same=False, uses=9, part=0.1) == 400_000


@given(st.floats(0, 1), st.none() | st.floats(0, 1))
def test_a_caller_only_raises_the_threshold(own: float, asked: float | None) -> None:
    threshold = read_policy({"similarityThreshold": own}).threshold(asked)
    assert threshold == (own if asked is None else max(own, asked))
