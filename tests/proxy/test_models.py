"""Which model answers: what is declared, what its server shows, and what happens when that changes."""

from __future__ import annotations

import asyncio
import time

import psycopg
import pytest
from asking import Asker, asked, chat, says

from service.cache.models import _Watched
from service.settings import DeclaredModel
from tests.fakes.upstream import USAGE, FakeUpstream, Reply, chat_body
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")


def shows(upstream: FakeUpstream, *, version: str = "0.32.0", tokens: int = 1) -> None:
    """What the model server shows of its model from here on."""
    card = {"id": "small-chat", "root": "small", "parent": None, "max_model_len": 4096, "created": 1}
    upstream.on("/v1/models", Reply(json={"data": [card]}))
    upstream.on("/version", Reply(json={"version": version}))
    upstream.on("/tokenize", Reply(json={"count": 1, "tokens": [tokens]}))


async def test_another_tokenizer_is_another_model_at_once(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    shows(upstream)
    says(upstream, "kite", "Old.", "New.")
    body = chat("Which knot for a kite?")
    async with Asker((await start(probe_interval=0.2)).base) as asker:
        old = await asker.stored(body)
        shows(upstream, tokens=2)
        async with asyncio.timeout(20):
            while (got := await asker.ask(body)).cache == "HIT":
                pass
        assert (got.text, got.cache) == ("New.", "MISS")
        assert (await asker.stored(body)).text == "New."
        kept = await asker.http.get(f"/v1/caches/default/entries/{old.headers['x-cache-entry-id']}")
        assert kept.json()["response"] == "Old."
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        cursor = await connection.execute(
            "select l.detail ->> 'name', m.tokenizer is distinct from p.tokenizer"
            " from semcache.audit_log l"
            " join semcache.model m on m.model_id = (l.detail ->> 'model_id')::bigint"
            " join semcache.model p on p.model_id = (l.detail ->> 'previous_model_id')::bigint"
            " where l.action = 'model_changed'"
        )
        assert await cursor.fetchall() == [("small-chat", True)]


async def test_an_answer_with_another_fingerprint_asks_for_another_look(upstream: FakeUpstream, start: Start) -> None:
    shows(upstream)
    body = chat("Which sail for a kite?")
    names = ("One", "Two", "Three", "Four", "Five")
    answers = [Reply(json=chat_body(text) | {"system_fingerprint": f"vllm-{text}"}) for text in names]
    upstream.on("sail", *answers)
    async with Asker((await start(probe_interval=3600)).base) as asker:
        assert (await asker.stored(body)).text == "One"
        looks = len([call for call in upstream.calls if call.target == "/version"])
        shows(upstream, version="0.33.1")
        # the server changed, and the first answer of the new one shows it
        assert (await asker.ask(chat("Which sail for a boat?"))).text == "Two"
        async with asyncio.timeout(20):
            while (got := await asker.ask(body)).cache == "HIT":
                pass
        assert got.text == "Three"
        assert len([call for call in upstream.calls if call.target == "/version"]) > looks
        # what the new one said was not kept as the old one's, which comes back
        shows(upstream)
        assert (await asker.ask(chat("Which sail for a raft?"))).text == "Four"
        async with asyncio.timeout(20):
            while (await asker.ask(body, cache_control="only-if-cached")).cache != "HIT":
                pass
        assert (await asker.ask(chat("Which sail for a boat?"))).cache == "MISS"


async def test_a_fingerprint_alone_changes_nothing(upstream: FakeUpstream, start: Start) -> None:
    shows(upstream)
    fingerprints = [Reply(json=chat_body(f"{n}") | {"system_fingerprint": f"f{n}"}) for n in range(9)]
    upstream.on("oar", *fingerprints)
    async with Asker((await start()).base) as asker:
        first = await asker.stored(chat("Which oar?"))
        await asker.stored(chat("Whose oar?"))
        assert (await asker.stored(chat("Which oar?"))).text == first.text


async def test_while_a_model_was_not_seen_nothing_is_served(upstream: FakeUpstream, start: Start) -> None:
    shows(upstream)
    hold = asyncio.Event()
    says(upstream, "rope", "Hemp.")
    async with Asker((await start()).base) as asker:
        assert (await asker.stored(chat("Which rope?"))).text == "Hemp."
        upstream.on("/version", Reply(json={"version": "0.32.0"}, hold=hold))
        async with Asker((await start(probe_patience=2)).base) as other:
            begun = time.perf_counter()
            got = await other.ask(chat("Which rope?"))
            assert time.perf_counter() - begun >= 2
            await asyncio.gather(*(other.ask(chat("Which rope?")) for _ in range(3)))
            assert time.perf_counter() - begun < 4  # one wait in vain is enough
            assert (got.text, got.cache, got.reason) == ("Hemp.", "BYPASS", "model_identity_unknown")
            assert len(asked(upstream, "Which rope?")) == 5
            hold.set()
            async with asyncio.timeout(20):
                while (await other.ask(chat("Which rope?"))).cache != "HIT":
                    pass


async def test_a_server_that_fails_to_show_itself_changes_nothing(upstream: FakeUpstream, start: Start) -> None:
    shows(upstream)
    says(upstream, "mast", "Pine.")
    async with Asker((await start(probe_interval=0.1)).base) as asker:
        await asker.stored(chat("Which mast?"))
        looks = len(upstream.calls)
        upstream.on("/version", Reply(status=500))
        async with asyncio.timeout(20):
            while len(upstream.calls) < looks + 20:
                assert (await asker.ask(chat("Which mast?"))).cache == "HIT"


async def test_a_model_that_nobody_asked_for_is_looked_at_before_it_is_used(
    upstream: FakeUpstream, start: Start
) -> None:
    shows(upstream)
    says(upstream, "keel", "Oak.", "Elm.")
    service = await start(probe_interval=0.1)
    async with Asker(service.base) as asker:
        await asker.stored(chat("Which keel?"))
        watched = service.runtime.models._models["small-chat"]
        for answers in (Reply(status=500), Reply(drop=True)):
            await rested(watched)
            upstream.on("/version", answers)
            assert (await asker.ask(chat("Which keel?"))).text == "Oak.", "who fails is still the one seen before"
        await rested(watched)
        shows(upstream, tokens=2)
        assert (await asker.ask(chat("Which keel?"))).text == "Elm."


async def rested(watched: _Watched) -> None:
    async with asyncio.timeout(20):
        while not watched.rests:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


async def test_what_is_declared_separates(upstream: FakeUpstream, start: Start) -> None:
    shows(upstream)
    says(upstream, "hull", "One.", "Two.")
    declared = {"small-chat": DeclaredModel(revision="r1", quantization="fp8")}
    async with Asker((await start(models=declared)).base) as asker:
        await asker.stored(chat("Which hull?"))
    async with Asker((await start(models=declared)).base) as asker:
        assert (await asker.ask(chat("Which hull?"))).cache == "HIT"
    changed = {"small-chat": DeclaredModel(revision="r2", quantization="fp8")}
    async with Asker((await start(models=changed)).base) as asker:
        got = await asker.ask(chat("Which hull?"))
        assert (got.cache, got.text) == ("MISS", "Two.")


async def test_a_canary_sees_other_weights(upstream: FakeUpstream, start: Start) -> None:
    shows(upstream)
    says(upstream, "tiller", "One.", "Two.")
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "small-chat", "usage": USAGE}

    def generates(text: str) -> None:
        choice = {"index": 0, "text": text, "logprobs": {"token_logprobs": [-0.5]}, "finish_reason": "length"}
        upstream.on("/v1/completions", Reply(json=head | {"choices": [choice]}))

    generates(" 2, 3, 5")
    async with Asker((await start(probe_canary=True, probe_interval=0.2)).base) as asker:
        await asker.stored(chat("Which tiller?"))
        generates(" 4, 6, 8")
        async with asyncio.timeout(20):
            while (got := await asker.ask(chat("Which tiller?"))).cache == "HIT":
                pass
    assert got.text == "Two."
