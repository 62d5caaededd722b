from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.controls import Controlled, parse_controls
from service.errors import Code, SemcacheError
from service.policy.controls import Controls


def read(body: dict[str, Any] | None = None, /, **headers: str) -> Controls:
    """Header names are written with underscores here."""
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return parse_controls(pairs, body).controls


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, Controls()),
        ({"x_cache_namespace": "faq"}, Controls(namespace="faq")),
        ({"x_cache_ttl": "60"}, Controls(ttl=60)),
        ({"x_cache_ttl": "0"}, Controls(ttl=0)),
        ({"x_cache_ttl": "0.5"}, Controls(ttl=0.5)),
        ({"x_cache_ttl": "99999999999999"}, Controls(ttl=2.0**31)),
        ({"x_cache_threshold": "0"}, Controls(threshold=0)),
        ({"x_cache_threshold": "1"}, Controls(threshold=1)),
        ({"X_Cache_Mode": "EXACT"}, Controls(mode="exact")),
        ({"x_cache_mode": "off"}, Controls(mode="off")),
        ({"x_cache_decision": "Calibrated"}, Controls(decision="calibrated")),
        ({"x_cache_refresh": "true"}, Controls(refresh=True)),
        ({"x_cache_refresh": "false"}, Controls()),
        ({"x_cache_tags": "harbour, tides,,harbour"}, Controls(tags=("harbour", "tides"))),
        ({"x_session_id": "visit-5"}, Controls(session_id="visit-5")),
        ({"x_session_id": "v" * 9_000}, Controls(session_id="v" * 500)),
        ({"x_cache_ttl": ""}, Controls()),
        ({"cache_control": "no-cache"}, Controls(refresh=True)),
        ({"cache_control": "No-Store , max-age=60"}, Controls(no_store=True, max_age=60)),
        ({"cache_control": "max-age=0"}, Controls(max_age=0)),
        ({"cache_control": 'max-age="5", max-age=9'}, Controls(max_age=5)),
        ({"cache_control": "max-age=soon"}, Controls(max_age=0)),
        ({"cache_control": "max-age=99999999999"}, Controls(max_age=2.0**31)),
        ({"cache_control": "min-fresh=5, min-fresh=9"}, Controls(min_fresh=9)),
        ({"cache_control": "min-fresh=0"}, Controls(min_fresh=0)),
        ({"cache_control": "only-if-cached, max-stale"}, Controls(only_if_cached=True)),
        ({"cache_control": 'ext="no-cache, no-store", ;=,'}, Controls()),
        ({"x_bf_cache_ttl": "30s"}, Controls(ttl=30)),
        ({"x_bf_cache_ttl": "1h2m0.5s"}, Controls(ttl=3720.5)),
        ({"x_bf_cache_ttl": "250ms"}, Controls(ttl=0.25)),
        ({"x_bf_cache_ttl": "90"}, Controls(ttl=90)),
        ({"x_bf_cache_threshold": "0.9"}, Controls(threshold=0.9)),
        ({"x_bf_cache_type": "direct"}, Controls(mode="exact")),
        ({"x_bf_cache_type": "semantic"}, Controls(mode="semantic")),
        ({"x_bf_cache_no_store": "true"}, Controls(no_store=True)),
        ({"x_bf_cache_key": "a"}, Controls(salt=(("x-bf-cache-key", "a"),))),
        ({"x_portkey_cache_force_refresh": "True"}, Controls(refresh=True)),
        ({"x_portkey_cache_namespace": "faq"}, Controls(namespace="faq")),
        ({"Helicone_Cache_Enabled": "true"}, Controls()),
        ({"Helicone_Cache_Enabled": "false"}, Controls(mode="off")),
        ({"Helicone_Cache_Seed": "a"}, Controls(salt=(("helicone-cache-seed", "a"),))),
        ({"Helicone_Cache_Bucket_Max_Size": "3"}, Controls(variants=3)),
        ({"cf_aig_cache_ttl": "60"}, Controls(ttl=60)),
        ({"cf_aig_skip_cache": "true"}, Controls(mode="off")),
        ({"cf_aig_skip_cache": "false"}, Controls()),
        ({"cf_aig_cache_key": "a"}, Controls(salt=(("cf-aig-cache-key", "a"),))),
    ],
)
def test_headers_are_read(headers: dict[str, str], expected: Controls) -> None:
    assert read(**headers) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"cache": {"ttl": 60, "s-maxage": 5}}, Controls(ttl=60, max_age=5)),
        ({"cache": {"ttl": 0, "s-max-age": 0}}, Controls(ttl=0, max_age=0)),
        ({"cache": {"no-cache": True, "no-store": True}}, Controls(refresh=True, no_store=True)),
        ({"cache": {"no-cache": False, "use-cache": True, "ttl": None, "type": "redis"}}, Controls()),
        ({"cache": {"namespace": "faq", "use-cache": False}}, Controls(namespace="faq", mode="off")),
        ({"cache": None, "skip_cache": None, "cache_similarity_threshold": None}, Controls()),
        ({"skip_cache": True}, Controls(mode="off")),
        ({"cache_similarity_threshold": 0.97}, Controls(threshold=0.97)),
        ({"session_id": "s-2"}, Controls(session_id="s-2")),
        ({"session_id": 5}, Controls()),
    ],
)
def test_body_fields_are_read(body: dict[str, Any], expected: Controls) -> None:
    assert read(body) == expected


def test_our_own_names_beat_the_aliases() -> None:
    body = {"cache": {"namespace": "c", "ttl": 1}, "cache_similarity_threshold": 0.99}
    headers = {"x_portkey_cache_namespace": "b", "cf_aig_cache_ttl": "2", "x_bf_cache_type": "direct"}
    own = {"x_cache_namespace": "a", "x_cache_ttl": "30", "x_cache_threshold": "0.8", "x_cache_mode": "semantic"}
    assert read(body, **headers, **own) == Controls(namespace="a", ttl=30, threshold=0.8, mode="semantic")
    assert read(body, **headers).namespace == "b"
    assert read({"session_id": "body"}, x_session_id="header").session_id == "header"


def test_of_several_aliases_the_strictest_counts() -> None:
    body = {"cache": {"ttl": 7, "s-maxage": 5}, "cache_similarity_threshold": 0.9}
    got = read(body, cf_aig_cache_ttl="60", x_bf_cache_threshold="0.95", cache_control="max-age=9")
    assert (got.ttl, got.threshold, got.max_age) == (7, 0.95, 5)


def test_a_switch_counts_wherever_it_is_thrown() -> None:
    assert read({"skip_cache": True}, x_cache_mode="semantic").mode == "off"
    assert read({"cache": {"no-store": True}}, x_bf_cache_no_store="false").no_store
    assert read({}, x_cache_refresh="false", cache_control="no-cache").refresh


def test_keys_of_other_gateways_keep_apart_by_name_and_value() -> None:
    salts = {
        read(**{name: value}).salt
        for name in ("x_bf_cache_key", "cf_aig_cache_key", "helicone_cache_seed")
        for value in ("a", "b")
    }
    assert len(salts) == 6
    assert read(cf_aig_cache_key="a", x_bf_cache_key="b").salt == (("x-bf-cache-key", "b"), ("cf-aig-cache-key", "a"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x-cache-ttl", ["abc", "-1", "1e3", "nan", "inf", "60s", "٣"]),
        ("x-cache-threshold", ["1.4", "-0.1", "high", "nan"]),
        ("x-cache-mode", ["fuzzy", "on"]),
        ("x-cache-refresh", ["maybe"]),
        ("x-cache-tags", [",".join(map(str, range(33))), "t" * 501]),
        ("x-cache-namespace", ["n" * 501]),
        ("x-portkey-cache-namespace", ["n" * 501]),
        ("x-bf-cache-key", ["k" * 501]),
        ("x-bf-cache-ttl", ["30 s", "s", "1x", "-5s"]),
        ("x-bf-cache-threshold", ["1.01"]),
        ("x-bf-cache-type", ["exact"]),
        ("x-bf-cache-no-store", ["2"]),
        ("x-portkey-cache-force-refresh", ["-"]),
        ("helicone-cache-enabled", ["perhaps"]),
        ("helicone-cache-bucket-max-size", ["0", "21", "1.5", "9" * 5000]),
        ("cf-aig-cache-ttl", ["-1"]),
        ("cf-aig-skip-cache", ["x"]),
    ],
)
def test_a_header_that_breaks_its_rule_is_named(name: str, values: list[str]) -> None:
    for value in values:
        with pytest.raises(SemcacheError, match=name) as caught:
            parse_controls([(name.encode(), value.encode())])
        assert caught.value.code is Code.INVALID_DATA
        assert caught.value.extra == {"param": name}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"cache": True}, "cache"),
        ({"cache": {"ttl": "soon"}}, "cache.ttl"),
        ({"cache": {"ttl": -1}}, "cache.ttl"),
        ({"cache": {"ttl": True}}, "cache.ttl"),
        ({"cache": {"ttl": float("inf")}}, "cache.ttl"),
        ({"cache": {"s-maxage": []}}, "cache.s-maxage"),
        ({"cache": {"no-cache": 7}}, "cache.no-cache"),
        ({"cache": {"namespace": 7}}, "cache.namespace"),
        ({"cache": {"namespace": "n" * 501}}, "cache.namespace"),
        ({"skip_cache": "sometimes"}, "skip_cache"),
        ({"cache_similarity_threshold": 1.5}, "cache_similarity_threshold"),
        ({"cache_similarity_threshold": True}, "cache_similarity_threshold"),
    ],
)
def test_a_field_that_breaks_its_rule_is_named(body: dict[str, Any], name: str) -> None:
    with pytest.raises(SemcacheError) as caught:
        parse_controls([], body)
    assert caught.value.extra == {"param": name}


def request(headers: list[tuple[bytes, bytes]], body: dict[str, Any]) -> Controlled:
    return parse_controls(headers, body)


def test_controls_are_taken_out_and_all_else_stays() -> None:
    kept = [
        (b"traceparent", b"00-ab-cd-01"),
        (b"X-Session-Id", b"visit-5"),
        (b"x-portkey-trace-id", b"t"),
        (b"helicone-user-id", b"u"),
    ]
    controls = [
        (b"Cache-Control", b"max-age=60"),
        (b"X-Cache-Anything", b"1"),
        (b"x-bf-cache-ttl", b"60s"),
        (b"x-portkey-cache-namespace", b"c"),
        (b"Helicone-Cache-Enabled", b"true"),
        (b"cf-aig-cache-ttl", b"60"),
        (b"cf-aig-metadata", b"{}"),
    ]
    plain = {"model": "m", "messages": [], "session_id": "s", "cached": 1}
    got = request(controls + kept, plain | {"cache": {"ttl": 60}, "skip_cache": False})
    assert got.headers == kept
    assert got.body == plain
    assert got.removed == {"cache", "skip_cache"}
    assert request(kept, plain).removed == frozenset()


def test_texts_in_headers_are_utf8_or_else_latin_1() -> None:
    assert request([(b"x-cache-tags", "größe".encode())], {}).controls.tags == ("größe",)
    assert request([(b"x-cache-tags", "größe".encode("latin-1"))], {}).controls.tags == ("größe",)


@given(st.binary(max_size=60))
def test_any_cache_control_is_survived(value: bytes) -> None:
    controls = request([(b"cache-control", value)], {}).controls
    assert controls.max_age is None or controls.max_age >= 0
