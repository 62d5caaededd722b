import asyncio

import numpy as np
import pytest
from fakes.embeddings import SIZE, embedding_server
from pydantic import ValidationError

from service.embed import remote
from service.embed.embedder import open_embedder
from service.embed.vectors import TextTooLong, same_generation
from service.errors import Code, SemcacheError
from service.settings import Settings

KEY = "a-key-that-must-not-be-shown"


@pytest.fixture
def server():
    with embedding_server() as running:
        yield running


@pytest.fixture
async def opened(server):
    """Opens embedders on the server and closes them at the end."""
    embedders = []

    async def open_one(**settings):
        fields = {"embedder": "remote", "embedder_url": server.url, "embedder_model": "enc", "embedder_key": KEY}
        embedders.append(await open_embedder(Settings(**(fields | settings))))
        return embedders[-1]

    yield open_one
    for embedder in embedders:
        await embedder.close()


def unit(vector):
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("understands_base64", [True, False])
async def test_vectors_come_in_the_order_of_the_texts_and_in_unit_length(server, opened, understands_base64):
    server.base64 = understands_base64
    embedder = await opened()
    texts = [f"boat number {number}" for number in range(5)]
    for text, vector in zip(texts, await embedder.embed_many(texts), strict=True):
        assert vector.dtype == np.float32
        assert np.allclose(vector, unit(server.vector(text)), atol=1e-6)
    assert server.authorizations == {f"Bearer {KEY}"}


async def test_what_it_is_is_recorded(server, opened):
    server.models = [{"id": "other", "max_model_len": 7}, {"id": "enc", "max_model_len": 99}]
    info = (await opened()).info
    assert (info.kind, info.name, info.dimensions, info.max_tokens) == ("remote", "enc", SIZE, 99)
    assert info.probe.shape == (len(remote.PROBES), SIZE)


@pytest.mark.parametrize(
    ("told", "setting", "limit"), [(None, None, 512), (None, 64, 64), (300, None, 300), (300, 64, 64), (300, 900, 300)]
)
async def test_it_reads_what_server_and_setting_both_allow(server, opened, told, setting, limit):
    server.models = [{"id": "enc"} if told is None else {"id": "enc", "max_model_len": told}]
    assert (await opened(embedder_max_tokens=setting)).info.max_tokens == limit


async def test_another_length_than_the_settings_say_is_refused_at_the_start(opened):
    with pytest.raises(SemcacheError, match=f"{SIZE}.*SEMCACHE_EMBEDDER_DIMENSIONS says 99") as failure:
        await opened(embedder_dimensions=99)
    assert failure.value.code is Code.DIMENSION_MISMATCH


async def test_a_text_that_the_server_refuses_as_too_long_fails_alone(server, opened):
    server.reads = 40
    server.models = [{"id": "enc", "max_model_len": 64}]
    embedder = await opened()
    results = await embedder.embed_many(["a b c", "d " * 50, "e f"])
    assert isinstance(results[1], TextTooLong)
    assert [np.allclose(results[i], unit(server.vector(t)), atol=1e-6) for i, t in ((0, "a b c"), (2, "e f"))]


async def test_a_server_that_cuts_in_silence_is_caught_by_the_tokens_it_counts(server, opened):
    server.reads, server.refuses_long = 30, False
    embedder = await opened(embedder_max_tokens=30)
    with pytest.raises(TextTooLong):
        await embedder.embed("word " * 31 + "one end")
    assert isinstance(await embedder.embed("quarter " * 8), np.ndarray)


async def test_without_a_count_only_texts_that_surely_fit_are_embedded(server, opened):
    server.counts = False
    embedder = await opened(embedder_max_tokens=30)
    assert isinstance(await embedder.embed("no more than 22 bytes"), np.ndarray)
    with pytest.raises(TextTooLong):
        await embedder.embed("a few more bytes than 22")


async def test_a_text_that_no_tokenizer_makes_fit_is_not_even_sent(server, opened):
    embedder = await opened()
    server.asked.clear()
    with pytest.raises(TextTooLong):
        await embedder.embed("word " * 40_000)
    assert server.asked == []


def numbers(*values):
    return {"data": [{"index": 0, "embedding": list(values)}]}


@pytest.mark.parametrize(
    "reply",
    [
        (500, {}),
        (503, b""),
        (429, {}),
        (401, {}),
        (403, {}),
        (404, {}),
        (302, b""),
        (422, {"detail": "no such field"}),
        (0, None),
        (200, b"{half"),
        (200, b"\xff\xfe"),
        (200, []),
        (200, {"data": []}),
        (200, {"data": None}),
        (200, {"data": [{"index": 1, "embedding": [1.0] * SIZE}]}),
        (200, {"data": [{"index": 0, "embedding": "no base64!"}]}),
        (200, {"data": [{"index": 0, "embedding": "AAA="}]}),
        (200, {"data": [{"index": 0, "embedding": [[1.0]] * SIZE}]}),
        (200, numbers(*["x"] * SIZE)),
        (200, numbers(*[1.0] * (SIZE + 1))),
        (200, numbers(*[0.0] * SIZE)),
        (200, numbers(*[float("nan")] * SIZE)),
        (200, numbers(*[None] * SIZE)),
        (200, numbers(*[float("inf")] * SIZE)),
    ],
    ids=str,
)
async def test_every_bad_answer_is_one_clear_error_and_the_next_good_one_is_used(server, opened, reply):
    embedder = await opened()
    server.reply = reply
    with pytest.raises(SemcacheError) as failure:
        await embedder.embed("a private question")
    assert failure.value.code is Code.EMBEDDER_UNAVAILABLE
    assert KEY not in str(failure.value)
    assert "private" not in str(failure.value)
    server.reply = None
    assert (await embedder.embed("a private question")).shape == (SIZE,)


async def test_a_server_that_does_not_answer_is_given_up_in_time(server, opened):
    embedder = await opened(embedder_timeout=0.2)
    server.hang.clear()
    with pytest.raises(SemcacheError, match="SEMCACHE_EMBEDDER_TIMEOUT"):
        await asyncio.wait_for(embedder.embed("a"), 5)


async def test_a_server_that_is_not_there_says_so_at_the_start(opened):
    with pytest.raises(SemcacheError) as failure:
        await opened(embedder_url="http://127.0.0.1:9/v1")
    assert failure.value.code is Code.EMBEDDER_UNAVAILABLE


@pytest.mark.parametrize("url", ["no url", "http://[", "ftp://host/v1"])
async def test_an_address_that_can_never_work_is_no_setting(opened, url):
    with pytest.raises(ValidationError, match="embedder_url"):
        await opened(embedder_url=url)


@pytest.mark.parametrize("missing", ["embedder_url", "embedder_model"])
async def test_a_missing_setting_is_named(opened, missing):
    with pytest.raises(ValidationError, match=missing):
        await opened(**{missing: None})


async def test_the_same_model_behind_a_new_connection_is_the_same_generation(opened):
    first, second = await opened(), await opened()
    assert same_generation(first.info.probe, second.info.probe)


async def test_another_model_under_the_same_name_after_an_outage_is_never_mixed(server, opened):
    embedder = await opened()
    known = await embedder.embed("a bridge")
    server.reply = (503, b"")
    with pytest.raises(SemcacheError):
        await embedder.embed("a boat")
    server.reply, server.weights = None, "second"
    for text in ("a boat", "a bridge"):
        with pytest.raises(SemcacheError, match="another model"):
            await embedder.embed(text)
    assert embedder.stale
    again = await opened()
    assert not same_generation(embedder.info.probe, again.info.probe)
    assert again.info.revision != embedder.info.revision
    assert float(await again.embed("a bridge") @ known) < 0.9


async def test_a_change_without_an_outage_is_seen_at_the_next_probe(server, opened, monkeypatch):
    embedder = await opened()
    await embedder.embed("a")
    server.weights = "second"
    monkeypatch.setattr(remote, "PROBE_INTERVAL", -1)
    with pytest.raises(SemcacheError, match="another model"):
        await embedder.embed("b")


async def test_any_text_that_json_can_hold_is_embedded(server, opened):
    embedder = await opened()
    for text in ("\ud800 alone", "nul \x00 here", "", "\u202eright to left", "🚢" * 20):
        assert (await embedder.embed(text)).shape == (SIZE,)


async def test_a_repeated_text_is_answered_from_memory(server, opened):
    embedder = await opened()
    first = await embedder.embed("a")
    server.asked.clear()
    assert await embedder.embed("a") is first
    assert server.asked == []
    assert embedder.counts.remembered == 1
