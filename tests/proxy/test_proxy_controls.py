"""What a caller may ask of the cache, what it is told, and that the model server hears nothing of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asking import CHAT, Asker, asked, chat, says

from tests.fakes.upstream import FakeUpstream, Reply, chat_body

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT, CLOSE = "Why do harbours have two moles?", "Why do harbours have two moles, please?"


async def test_a_hit_says_what_it_is(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "moles", "Two.", "Three.")
    await asker.ask(chat(TEXT), x_cache_ttl="600")
    exact = (await asker.stored(chat(TEXT))).headers
    near = (await asker.stored(chat(CLOSE))).headers
    assert (exact["x-cache"], near["x-cache"]) == ("HIT", "SEMANTIC-HIT")
    assert exact["x-cache-entry-id"] == near["x-cache-entry-id"]
    assert float(exact["x-cache-similarity"]) == 1
    assert 0.9 < float(near["x-cache-threshold"]) <= float(near["x-cache-similarity"]) < 1
    assert 590 <= int(exact["x-cache-ttl"]) <= 600
    assert 0 <= int(exact["age"]) <= 10
    stream = await asker.stored(chat(TEXT, stream=True))
    assert set(exact) - {"content-length"} <= set(stream.headers)
    found = await asker.http.get(f"/v1/caches/{asker.cache}/entries/{exact['x-cache-entry-id']}")
    assert (found.json()["response"], found.json()["prompt"]) == ("Two.", TEXT)


async def test_a_threshold_of_the_similarity_that_was_shown_is_met(upstream: FakeUpstream, asker: Asker) -> None:
    """Of three, one at least has a seventh digit that would be rounded up."""
    says(upstream, "owls", "Mice.", "Voles.", "Shrews.", "Nothing.")
    for season in ("winter", "summer", "spring"):
        await asker.ask(chat(f"What do owls eat in {season}?"))
        await asker.stored(chat(f"What do owls eat in {season}?"))
        near = chat(f"Please, what do owls eat in {season}?")
        shown = (await asker.stored(near)).headers["x-cache-similarity"]
        assert (await asker.ask(near, x_cache_threshold=shown)).headers["x-cache"] == "SEMANTIC-HIT"


async def test_misses_say_why(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "model", "Yes.")
    bodies = {
        "no_entry": chat("Is this a new question?"),
        "several_choices": chat("Is this a new question?", n=2),
        "kv_transfer_params": chat("Is this a new question?", kv_transfer_params={"a": 1}),
        "mode_off": chat("Is this a new question?"),
        "malformed": chat("Is this a new question?", stream="yes"),
    }
    for reason, body in bodies.items():
        got = await asker.ask(body, **({"x_cache_mode": "off"} if reason == "mode_off" else {}))
        passed = reason in ("kv_transfer_params", "mode_off", "malformed")
        assert (got.cache, got.reason, reason) == ("BYPASS" if passed else "MISS", reason, reason)
        assert "x-cache-entry-id" not in got.headers


@pytest.mark.parametrize("control", [{"cache_control": "no-cache"}, {"x_cache_refresh": "true"}])
async def test_a_refresh_asks_anew_and_replaces(upstream: FakeUpstream, asker: Asker, control: dict[str, str]) -> None:
    says(upstream, "sails", "Old.", "New.")
    body = chat("What do sails do?")
    await asker.stored(body)
    got = await asker.ask(body, **control)
    assert (got.text, got.cache, got.reason) == ("New.", "REFRESH", "refresh")
    async with asyncio.timeout(10):
        while (await asker.stored(body)).text != "New.":
            pass
    assert len(asked(upstream, "sails")) == 2


async def test_a_query_is_the_models_and_keeps_apart(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "keels", "Plain.", "Another.")
    body = chat("What do keels do?")
    await asker.stored(body)
    assert (await asker.ask(body, path=f"{CHAT}?api-version=2")).text == "Another."
    assert asked(upstream, "keels")[-1].target == f"{CHAT}?api-version=2"
    assert (await asker.stored(body, path=f"{CHAT}?api-version=2")).text == "Another."
    assert (await asker.ask(body)).text == "Plain."


async def test_no_store_keeps_nothing_and_reads_on(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "oars", *(f"Answer {i}." for i in range(9)))
    body = chat("What do oars do?")
    for number in range(3):
        got = await asker.ask(body, cache_control="no-store")
        assert (got.text, got.cache) == (f"Answer {number}.", "MISS")
    kept = (await asker.stored(body)).text
    assert (await asker.ask(body, cache_control="no-store")).text == kept


async def test_a_lifetime_of_nothing_is_never_served(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "buoy", "One.", "Two.")
    assert (await asker.ask(chat("What is a buoy?"), x_cache_ttl="0")).text == "One."
    assert (await asker.ask(chat("What is a buoy?"))).text == "Two."


async def test_only_if_cached_never_asks(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "jetty", "Wood.")
    got = await asker.ask(chat("What is a jetty of?"), cache_control="only-if-cached")
    error = got.json["error"]
    assert (got.status, error["code"], error["type"], got.cache) == (504, "not_cached", "server_error", "MISS")
    assert got.headers["x-should-retry"] == "false"
    assert not asked(upstream, "jetty")
    await asker.stored(chat("What is a jetty of?"))
    assert (await asker.ask(chat("What is a jetty of?"), cache_control="only-if-cached")).text == "Wood."


async def test_an_older_answer_than_max_age_is_asked_anew(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "flag", "Blue.", "Red.")
    await asker.stored(chat("Which flag is up?"))
    assert (await asker.ask(chat("Which flag is up?"), cache_control="max-age=600")).text == "Blue."
    got = await asker.ask(chat("Which flag is up?"), cache_control="max-age=0")
    assert (got.text, got.cache, got.reason) == ("Red.", "MISS", "too_old")


async def test_an_answer_that_ends_sooner_than_min_fresh_is_not_served(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "moles", "Two.")
    await asker.ask(chat(TEXT), x_cache_ttl="600")
    await asker.stored(chat(TEXT))
    for body, status in ((chat(TEXT), "HIT"), (chat(CLOSE), "SEMANTIC-HIT")):
        fresh = await asker.ask(body, cache_control="min-fresh=300, only-if-cached")
        assert (fresh.status, fresh.cache) == (200, status)
        assert (await asker.ask(body, cache_control="min-fresh=700, only-if-cached")).status == 504
    assert (await asker.ask(chat(TEXT), cache_control="min-fresh=700, only-if-cached")).reason == "ends_too_soon"


async def test_an_answer_that_never_ends_is_fresh_enough(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "moles", "Two.")
    await asker.new_cache(ttlMillis=None)
    await asker.stored(chat(TEXT))
    assert (await asker.ask(chat(TEXT), cache_control="min-fresh=99999999")).cache == "HIT"
    assert (await asker.ask(chat(CLOSE), cache_control="min-fresh=99999999")).cache == "SEMANTIC-HIT"


async def test_callers_only_tighten(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "moles", *(f"Answer {i}." for i in range(20)))
    await asker.stored(chat(TEXT))
    assert (await asker.ask(chat(CLOSE), x_cache_threshold="1", cache_control="no-store")).cache == "MISS"
    assert (await asker.ask(chat(CLOSE), x_cache_mode="exact", cache_control="no-store")).reason == "exact_only"
    far = await asker.ask(chat("Who paints the moles of the harbour?"), x_cache_threshold="0", cache_control="no-store")
    assert far.cache == "MISS"
    assert float(far.headers["x-cache-threshold"]) > 0.9
    await asker.new_cache(mode="exact", ttlMillis=60_000)
    await asker.stored(chat(TEXT))
    assert (await asker.ask(chat(CLOSE), x_cache_mode="semantic")).cache == "MISS"
    hit = await asker.stored(chat(TEXT))
    assert int(hit.headers["x-cache-ttl"]) <= 60
    await asker.ask(chat("And the lifetime of moles?"), x_cache_ttl="600")
    assert int((await asker.stored(chat("And the lifetime of moles?"))).headers["x-cache-ttl"]) <= 60


async def test_tags_and_salt(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "kelp", *(f"Answer {i}." for i in range(9)))
    body = chat("What eats kelp?")
    first = await asker.stored(body, x_cache_tags="sea, food")
    entry = await asker.http.get(f"/v1/caches/{asker.cache}/entries/{first.headers['x-cache-entry-id']}")
    assert entry.json()["tags"] == ["sea", "food"]
    salted = await asker.stored(body, x_bf_cache_key="mine")
    assert salted.text != first.text
    assert (await asker.stored(body, helicone_cache_seed="mine")).text not in (first.text, salted.text)
    assert (await asker.stored(body)).text == first.text


async def test_an_unknown_cache_is_told_in_openais_words(upstream: FakeUpstream, asker: Asker) -> None:
    for name in ("no-such-cache", "a b", "\N{LATIN SMALL LETTER E WITH ACUTE}"):
        got = await asker.http.post(
            "/v1/chat/completions",
            json=chat("Hello?"),
            headers=[(b"x-cache-namespace", name.encode())],
        )
        assert (got.status_code, got.json()["error"]["code"]) == (404, "cache_not_found")
    asker.cache = ""
    inside = await asker.ask(chat("Hello?", cache={"namespace": "\x00\ud800"}))
    assert inside.json["error"]["code"] == "cache_not_found"
    assert not upstream.calls or all(call.target != "/v1/chat/completions" for call in upstream.calls)


@pytest.mark.parametrize(
    ("header", "value"),
    [("x_cache_ttl", "soon"), ("x_cache_threshold", "1.2"), ("x_cache_mode", "fuzzy"), ("x_cache_refresh", "maybe")],
)
async def test_a_control_that_breaks_its_rule_is_refused(
    upstream: FakeUpstream, asker: Asker, header: str, value: str
) -> None:
    got = await asker.ask(chat("Hello?"), **{header: value})
    error = got.json["error"]
    assert (got.status, error["type"], error["param"]) == (400, "invalid_request_error", header.replace("_", "-"))
    assert not asked(upstream, "Hello?")


async def test_the_model_server_gets_the_request_and_nothing_else(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "literal", "Yes.")
    controls = {"cache": {"ttl": 60}, "skip_cache": False, "cache_similarity_threshold": 0.97}
    headers = {
        "x_cache_ttl": "60",
        "cache_control": "max-age=60",
        "x_bf_cache_ttl": "60s",
        "x_portkey_cache_force_refresh": "false",
        "helicone_cache_enabled": "true",
        "cf_aig_cache_ttl": "60",
        "x_session_id": "visit-5",
        "x_other": "kept",
        "authorization": "Bearer ours",
        "cookie": "a=b",
    }
    for mode in ({}, {"x_cache_mode": "off"}, {"x_cache_refresh": "true"}):
        raw = json.dumps(chat(f"a literal text {mode}", top_k=5) | controls, indent=1)
        raw = raw.replace('"top_k": 5', '"top_k": 5.0, "deep": [1e2, {"\\u00e9": null}]')
        got = await asker.ask(raw.encode(), **headers | mode)
        assert got.status == 200
        call = asked(upstream, f"a literal text {mode}")[-1]
        names = {name for name, _ in call.headers}
        assert {"x-other", "x-session-id"} <= names
        kept = [n for n in names if n.startswith(("x-cache", "x-bf", "x-portkey", "helicone", "cf-aig"))]
        assert not kept
        assert not names & {"cache-control", "authorization", "cookie"}
        assert call.json == _without(json.loads(raw), controls)
        assert b'"top_k": 5.0' in call.body  # the bytes that were not touched are those that came
        assert b'{"\\u00e9": null}' in call.body


async def test_a_request_without_controls_passes_byte_for_byte(upstream: FakeUpstream, asker: Asker) -> None:
    raw = b'{ "messages":[ {"role":"user","content":"caf\\u00e9, verbatim"} ],"temperature":0.0 ,"model":"small-chat"}'
    upstream.on("verbatim", Reply(json=chat_body("Yes.")))
    await asker.ask(raw)
    assert asked(upstream, "verbatim")[0].body == raw


async def test_what_is_not_json_is_for_the_model_server_to_judge(upstream: FakeUpstream, asker: Asker) -> None:
    refusal = {"error": {"message": "not JSON", "type": "Bad Request", "code": 400}}
    upstream.on("/v1/chat/completions", Reply(status=400, json=refusal))
    deep = b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for raw in (b"{", b"[1]", b"", b"\xff", b'{"a": NaN}', deep, b'{"model": ["a"], "messages": []}'):
        got = await asker.ask(raw)
        assert (got.status, got.json, got.cache, got.reason) == (400, refusal, "BYPASS", "malformed"), raw[:20]
        assert upstream.calls[-1].body == raw


async def test_any_text_comes_back_as_it_was(upstream: FakeUpstream, asker: Asker) -> None:
    texts = [
        "nul \u0000 here",
        "half \ud83d here",
        "both \U0001f469\u200d\U0001f52c",
        "line\u2028end\r\n",
        "x" * 200_000,
    ]
    for number, text in enumerate(texts):
        upstream.on(f"text {number}:", Reply(json=chat_body(f"I read {text}")), Reply(status=500))
        body = chat(f"text {number}: {text}")
        assert (await asker.ask(body)).text == f"I read {text}"
        assert (await asker.stored(body)).text == f"I read {text}"
        assert (await asker.stored(body | {"stream": True})).text == f"I read {text}"
        assert asked(upstream, f"text {number}:")[0].json == body


def _without(body: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


async def test_a_caller_may_ask_for_a_further_policy(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "sourdough", "Fold it.")
    await asker.stored(chat("How do I shape a sourdough loaf?"))
    close = chat("How can I shape a sourdough loaf?")
    asked = await asker.ask(close, x_cache_decision="calibrated", cache_control="no-store")
    assert (asked.cache, asked.reason) == ("MISS", "uncalibrated")
    assert (await asker.ask(close)).cache == "SEMANTIC-HIT"
    assert (await asker.ask(close, x_cache_decision="guess")).status == 400
