"""What the proxy decided can be explained: by the request itself, and by the id that its answer named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asking import CHAT, Asker, asked, chat, says
from running import Service

from tests.fakes.upstream import FakeUpstream
from tests.proxy.conftest import Start

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def explained(asker: Asker, body: Any, *, path: str = CHAT, query: str = "", **headers: str) -> Any:
    given = {k.replace("_", "-"): v for k, v in headers.items()}
    request = {"path": path, "query": query, "body": body, "headers": given}
    got = await asker.http.post(f"/v1/caches/{asker.cache}/explain", json={"request": request})
    assert got.status_code == 200, got.text
    return got.json()


async def test_a_request_of_the_proxy_is_explained_as_it_is_answered(upstream: FakeUpstream, asker: Asker) -> None:
    await asker.new_cache(similarityThreshold=0.9)
    says(upstream, "cooper", "Barrels.")
    first = await asker.stored(chat("What does a cooper make?"))
    entry = first.headers["x-cache-entry-id"]
    near = chat("What does a cooper make for us?")
    for body, headers in ((chat("What does a cooper make?"), {}), (near, {}), (near, {"x_cache_threshold": "0.999"})):
        told = await explained(asker, body, **headers)
        got = await asker.ask(body, cache_control="only-if-cached", **headers)
        outcome = {"HIT": "hit", "SEMANTIC-HIT": "semantic_hit"}.get(got.cache or "", "miss")
        assert (told["outcome"], told["reason"]) == (outcome, got.reason or told["reason"])
        assert told["neighbours"][0]["id"] == entry
        assert told["neighbours"][0]["scopeDiffersIn"] == []
    assert told["neighbours"][0]["obstacles"] == ["below_threshold"]


async def test_an_answer_that_is_not_fresh_enough_says_so(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "fletcher", "Arrows.")
    await asker.ask(chat("What does a fletcher make?"), x_cache_ttl="600")
    await asker.stored(chat("What does a fletcher make?"))
    for directive, reason in (("max-age=0", "too_old"), ("min-fresh=700", "ends_too_soon")):
        told = await explained(asker, chat("What does a fletcher make?"), cache_control=directive)
        assert (told["outcome"], told["reason"]) == ("miss", reason)
        assert told["neighbours"][0]["obstacles"] == [reason]
        assert "without max-age and min-fresh" in told["wouldChange"]
        near = await explained(asker, chat("What does a fletcher make for us?"), cache_control=directive)
        assert reason in near["neighbours"][0]["obstacles"]


async def test_the_parts_of_the_scope_that_differ_are_named(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "tanner", "Leather.")
    await asker.stored(chat("What does a tanner make?"))
    other = {"messages": [{"role": "system", "content": "Be brief."}, *chat("What does a tanner make?")["messages"]]}
    told = await explained(asker, chat("") | other | {"temperature": 1})
    assert told["outcome"] == "miss"
    assert set(told["neighbours"][0]["scopeDiffersIn"]) == {"sampling", "system"}
    told = await explained(asker, chat("What does a tanner make?"), query="api-version=2")
    assert (told["outcome"], told["neighbours"][0]["scopeDiffersIn"]) == ("miss", ["salt"])


async def test_a_clients_answer_that_the_policy_refuses_says_so(asker: Asker) -> None:
    await asker.new_cache(clientAnswers=False)
    given = {"prompt": "What does a chandler make?", "scope": {"sampling": {"temperature": 0}}, "response": "Candles."}
    await asker.http.post(f"/v1/caches/{asker.cache}/entries", json=given)
    told = await explained(asker, chat("What does a chandler make?"))
    assert "client_answer" in told["neighbours"][0]["obstacles"]


async def test_what_passes_by_the_cache_says_so(asker: Asker) -> None:
    body = chat("What does a glazier fit?")
    assert (await explained(asker, body, x_cache_mode="off"))["reason"] == "mode_off"
    assert (await explained(asker, body, cache_control="no-cache"))["outcome"] == "refresh"
    told = await explained(asker, {"model": "m", "input": "x", "previous_response_id": "r"}, path="/v1/responses")
    assert (told["outcome"], told["reason"]) == ("bypass", "previous_response_id")
    assert "passes by the cache (previous_response_id)" in told["wouldChange"]
    assert "previous_response_id" in told["wouldChange"]


async def test_odd_text_in_a_request_is_explained_too(asker: Asker) -> None:
    odd = {"x-cache-tags": "\ud800", "é\ud800": "é\ud800"}
    request = {"path": CHAT, "query": "a=\ud800", "headers": odd, "body": chat("What is \ud800?") | {"x": "\ud800"}}
    content = json.dumps({"request": request})
    got = await asker.http.post(
        f"/v1/caches/{asker.cache}/explain", content=content, headers={"content-type": "application/json"}
    )
    assert (got.status_code, got.json()["outcome"]) == (200, "miss"), got.text


async def test_explaining_asks_no_model_and_keeps_nothing(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "wheelwright", "Wheels.")
    body = chat("What does a wheelwright make?")
    assert (await explained(asker, body))["outcome"] == "miss"
    assert not asked(upstream, "wheelwright")
    stats = (await asker.http.get(f"/v1/caches/{asker.cache}/stats")).json()
    assert (stats["entries"], stats["lookups"]) == (0, 0)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prompt": "p", "request": {"path": CHAT, "body": {}}},
        {"request": {"path": CHAT, "body": {}}, "similarityThreshold": 0.9},
        {"request": {"path": "/v1/models", "body": {}}},
        {"request": {"path": CHAT, "body": {}, "headers": {"x-cache-threshold": "2"}}},
    ],
)
async def test_what_cannot_be_explained_is_refused(asker: Asker, body: dict[str, Any]) -> None:
    got = await asker.http.post(f"/v1/caches/{asker.cache}/explain", json=body)
    assert (got.status_code, got.json()["code"]) == (422, "invalid_data")


async def test_an_answers_id_leads_to_what_became_of_its_request(upstream: FakeUpstream, asker: Asker) -> None:
    says(upstream, "fletcher", "Arrows.")
    hit = await asker.stored(chat("What does a fletcher make?"), x_request_id="order-66")
    for name in ("order-66", hit.headers["x-request-id"]):
        found = (await asker.http.get(f"/v1/caches/{asker.cache}/requests/{name}")).json()["data"]
        assert (found[0]["outcome"], found[0]["reason"]) == ("hit", "same_request")
        assert found[0]["entryId"] == hit.headers["x-cache-entry-id"]
    assert (await asker.http.get(f"/v1/caches/{asker.cache}/requests/order-67")).json() == {"data": []}
    assert (await asker.http.get("/v1/caches/default/requests/order-66")).json() == {"data": []}
    assert (await asker.http.get(f"/v1/caches/{asker.cache}/requests/%00")).json() == {"data": []}


async def test_a_judges_word_in_an_explanation_is_not_kept(
    upstream: FakeUpstream, start: Start, database_url: str
) -> None:
    service: Service = await start(judge_url=upstream.url, judge_model="judge")
    async with Asker(service.base) as asker:
        await asker.new_cache(similarityThreshold=0.999, secondStage="judge")
        says(upstream, "sawyer", "Planks.")
        await asker.stored(chat("What does my sawyer cut?"))
        says(upstream, '"model":"judge"', "YES")
        told = await explained(asker, chat("What does a sawyer cut?"))
        assert (told["outcome"], told["reason"]) == ("semantic_hit", "second_stage_accepted")
        await service.runtime.doubts.stop()
        stats = (await asker.http.get(f"/v1/caches/{asker.cache}/stats")).json()
    assert stats["entries"] == 1
