"""A real vLLM that makes vectors: through the proxy for clients, and as the cache's own embedder."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest
from calls import Cache, new_cache
from conftest import NewDatabase
from openai import AsyncOpenAI
from running import Service, running_service

from service.settings import Settings, UpstreamTarget
from tests.vllm.said import ask_chat, kept
from tests.vllm.server import EMBEDDER, Vllm

TEXTS = ["When does the ferry leave?", "Which knot holds best?"]
NEAR = "When does a ferry leave?"  # the random model finds it near the first, by chance


@pytest.fixture(scope="module")
def proxy(vllm: Vllm, embedder: Vllm, new_database: NewDatabase) -> Iterator[Service]:
    """A service before both servers, which embeds with the second."""
    with new_database() as url:
        settings = Settings(
            database_url=url,
            upstream=vllm.url,
            upstreams={EMBEDDER: UpstreamTarget(url=embedder.url)},
            embedder="remote",
            embedder_url=embedder.url,
            embedder_model=EMBEDDER,
        )
        with running_service(settings) as running:
            yield running


@pytest.fixture
def cache(proxy: Service) -> Cache:
    """Vectors of a random model say nothing, so anything is near enough."""
    return new_cache(proxy.http, similarityThreshold=0.0)


@pytest.fixture
async def vectors(embedder: Vllm) -> AsyncIterator[AsyncOpenAI]:
    """Past the cache."""
    async with AsyncOpenAI(base_url=embedder.url, api_key="none", max_retries=0) as client:
        yield client


async def embed(client: AsyncOpenAI, texts: Any, **fields: Any) -> tuple[str | None, np.ndarray, Any]:
    raw = await client.embeddings.with_raw_response.create(model=EMBEDDER, input=texts, **fields)
    body = raw.parse()
    return raw.headers.get("x-cache"), np.array([_numbers(row.embedding) for row in body.data]), body.usage


def _numbers(embedding: list[float] | str) -> Any:
    return np.frombuffer(base64.b64decode(embedding), "<f4") if isinstance(embedding, str) else embedding


@pytest.mark.parametrize("first", ["base64", "float"])
async def test_vectors_are_the_same_in_either_spelling(vectors: AsyncOpenAI, cached: AsyncOpenAI, first: str) -> None:
    _, new, usage = await embed(vectors, TEXTS)
    other = "float" if first == "base64" else "base64"
    missed = await embed(cached, TEXTS, encoding_format=first)
    assert missed[0] == "MISS"
    cache = None
    while cache != "HIT":
        cache, again, used = await embed(cached, TEXTS, encoding_format=other)
        assert cache in ("COALESCED", "HIT")
    for found in (missed[1], again):
        np.testing.assert_allclose(found, new, atol=1e-6)
    assert missed[2] == used == usage


async def test_one_text_is_not_a_list_of_others(cached: AsyncOpenAI) -> None:
    said = [await embed(cached, texts) for texts in (TEXTS[0], TEXTS, TEXTS[::-1], [[72, 73]])]
    assert [one[0] for one in said] == ["MISS"] * 4
    np.testing.assert_allclose(said[1][1], said[2][1][::-1], atol=1e-6)


async def test_neighbours_are_found_with_its_vectors(vectors: AsyncOpenAI, cache: Cache) -> None:
    entry = cache.store(TEXTS[0], "At noon.")
    (row,) = cache.look(NEAR)["data"]
    _, found, _ = await embed(vectors, [TEXTS[0], NEAR])
    assert (row["id"], row["searchStrategy"]) == (entry, "semantic")
    assert row["similarity"] == pytest.approx(float(found[0] @ found[1]), abs=2e-3)  # halfvec


async def test_a_chat_is_answered_by_its_neighbour(cached: AsyncOpenAI) -> None:
    first_talk, near_talk = ([{"role": "user", "content": text}] for text in (TEXTS[0], NEAR))
    first = await ask_chat(cached, first_talk, seed=4)
    await kept(lambda: ask_chat(cached, first_talk, seed=4))
    near = await ask_chat(cached, near_talk, seed=4, stream=True)
    assert (first.cache, near.cache) == ("MISS", "SEMANTIC-HIT")
    assert near == first


async def test_a_text_that_it_cannot_read_whole_is_matched_exactly(cache: Cache) -> None:
    text = "a knot " * 2000
    cache.store(text, "Too long.")
    assert cache.responses(text) == ["Too long."]
    assert cache.responses(text + "or two") == []
