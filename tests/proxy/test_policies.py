"""What a cache's policy says of requests that are draws, of users, of clients' answers, and of watching only."""

from __future__ import annotations

import pytest
from asking import Asker, asked, chat, says

from tests.fakes.upstream import FakeUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")


def numbered(upstream: FakeUpstream, match: str) -> None:
    says(upstream, match, *(f"Answer {i}." for i in range(50)))


async def entries(asker: Asker, number: int) -> None:
    """Return when the cache holds so many entries, and nothing that is under way can be followed."""
    for _ in range(400):
        got = await asker.http.get(f"/v1/caches/{asker.cache}/entries")
        metrics = await asker.http.get("/metrics")
        if len(got.json()["data"]) == number and "semcache_flights 0.0" in metrics.text:
            return
    raise AssertionError(f"not {number} entries: {got.text[:200]}")


async def test_never(upstream: FakeUpstream, asker: Asker) -> None:
    numbered(upstream, "riddle")
    await asker.new_cache(sampled="never")
    body = chat("Make up a riddle", temperature=0.9)
    answers = [await asker.ask(body) for _ in range(3)]
    assert len({a.text for a in answers}) == 3
    assert {(a.cache, a.reason) for a in answers} == {("BYPASS", "sampled")}
    assert (await asker.stored(chat("Make up a riddle"))).cache == "HIT"


async def test_exact(upstream: FakeUpstream, asker: Asker) -> None:
    numbered(upstream, "limerick")
    await asker.new_cache(sampled="exact")
    body = chat("How do I write a good limerick?", temperature=0.9)
    assert (await asker.stored(body)).cache == "HIT"
    close = "How do I write a good limerick, please?"
    assert (await asker.ask(chat(close, temperature=0.9))).cache == "MISS"
    await asker.stored(chat("How do I write a good limerick?"))
    assert (await asker.ask(chat(close))).cache == "SEMANTIC-HIT"


async def test_variants_are_filled_before_any_is_repeated(upstream: FakeUpstream, asker: Asker) -> None:
    numbered(upstream, "haiku")
    await asker.new_cache(sampled="variants(3)")
    body = chat("How do I write a good haiku?", temperature=0.9)
    answers = []
    for number in range(3):
        got = await asker.ask(body)
        assert (got.cache, got.reason) == ("MISS", "variants_filling" if number else "no_entry")
        answers.append(got.text)
        await entries(asker, number + 1)
    assert len(set(answers)) == 3
    seen = {(await asker.ask(body)).text for _ in range(40)}
    assert seen == set(answers)
    by_seed = {seed: {(await asker.ask(body | {"seed": seed})).text for _ in range(3)} for seed in range(8)}
    assert all(len(texts) == 1 for texts in by_seed.values())
    assert set.union(*by_seed.values()) == set(answers)
    by_user = {name: {(await asker.ask(body | {"user": name})).text for _ in range(3)} for name in "abcdef"}
    assert all(len(texts) == 1 for texts in by_user.values())
    close = await asker.ask(chat("How do I write a good haiku, please?", temperature=0.9))
    assert (close.cache, close.text in answers) == ("SEMANTIC-HIT", True)
    assert len(asked(upstream, "haiku")) == 3


async def test_a_caller_may_ask_for_more_variants_and_not_for_fewer(upstream: FakeUpstream, asker: Asker) -> None:
    numbered(upstream, "sonnet")
    body = chat("Write a sonnet", temperature=0.9)
    for asks, policy in (("2", "semantic"), ("1", "variants(2)")):
        await asker.new_cache(sampled=policy)
        for number in range(2):
            assert (await asker.ask(body, helicone_cache_bucket_max_size=asks)).cache == "MISS"
            await entries(asker, number + 1)
        assert (await asker.ask(body, helicone_cache_bucket_max_size=asks)).cache == "HIT"


async def test_users_keep_apart_where_the_policy_says_so(upstream: FakeUpstream, asker: Asker) -> None:
    numbered(upstream, "leave")
    await asker.new_cache(share="user")
    text, close = "What is our parental leave rule?", "What's our parental leave rule?"
    mine = await asker.stored(chat(text, user="u-1"))
    for body in (chat(text, user="u-2"), chat(close, user="u-3"), chat(text), chat(text, safety_identifier="u-1")):
        assert (await asker.ask(body)).text != mine.text
    assert (await asker.ask(chat(close, user="u-1"))).text == mine.text
    await asker.new_cache()
    ours = await asker.stored(chat(text, user="u-1"))
    assert (await asker.ask(chat(text, user="u-2"))).text == ours.text


async def test_a_shadow_cache_only_watches(upstream: FakeUpstream, asker: Asker) -> None:
    numbered(upstream, "lantern")
    await asker.new_cache(shadow=True)
    body = chat("Who lights the lantern?")
    first = await asker.ask(body)
    assert (first.cache, first.reason) == ("BYPASS", "shadow")
    await entries(asker, 1)
    got = await asker.ask(body)
    kept = got.headers["x-cache-entry-id"]
    assert (got.cache, got.reason) == ("BYPASS", "shadow")
    assert float(got.headers["x-cache-similarity"]) == 1
    close = await asker.ask(chat("Who lights the lantern, please?"))
    again = await asker.ask(body)
    assert {a.headers["x-cache-entry-id"] for a in (got, close, again)} == {kept}
    assert len({a.text for a in (first, got, close, again)}) == 4


async def test_pictures_by_url_are_trusted_only_if_the_policy_does(upstream: FakeUpstream, asker: Asker) -> None:
    numbered(upstream, "harbour.png")
    image = {"type": "image_url", "image_url": {"url": "https://pictures.example/harbour.png"}}
    body = chat([{"type": "text", "text": "What is this?"}, image])  # type: ignore[arg-type] # parts are content too
    got = await asker.ask(body)
    assert (got.cache, got.reason) == ("BYPASS", "image_by_url")
    await asker.new_cache(trustImageUrls=True)
    assert (await asker.stored(body)).cache == "HIT"
