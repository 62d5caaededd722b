"""A remote embedder fails and recovers: what needs no vector goes on, the rest says why."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from calls import Cache, assert_problem
from fakes.embeddings import EmbeddingServer, embedding_server
from running import Service, running_service

from service.errors import Code
from service.settings import Settings

ASKED, NEAR, OTHER = "copper kettle hook", "copper  kettle hook", "copper kettle hook please"


@pytest.fixture
def embeddings() -> Iterator[EmbeddingServer]:
    with embedding_server() as server:
        yield server


@pytest.fixture
def service(settings: Settings, embeddings: EmbeddingServer) -> Iterator[Service]:
    remote = {"embedder": "remote", "embedder_url": embeddings.url, "embedder_model": "enc", "embedder_timeout": 0.5}
    with running_service(settings.model_copy(update=remote)) as running:
        yield running


@pytest.fixture
def cache(service: Service) -> Cache:
    return Cache(service.http, "default")


def break_it(server: EmbeddingServer, how: str) -> None:
    if how == "hangs":
        server.hang.clear()
    else:
        server.reply = {"fails": (500, {"error": "out of memory"}), "talks nonsense": (200, {"data": "nothing"})}[how]


@pytest.mark.parametrize("how", ["fails", "hangs", "talks nonsense"])
def test_a_failing_embedder_breaks_what_needs_it_only(cache: Cache, embeddings: EmbeddingServer, how: str) -> None:
    cache.store(ASKED, "above the stove")
    assert cache.responses(NEAR) == ["above the stove"]
    break_it(embeddings, how)
    assert cache.responses(ASKED) == ["above the stove"]
    assert cache.look(ASKED, searchStrategies=["exact"])["reason"] == "same_request"
    for rest, body in (
        ("entries/search", {"prompt": OTHER}),
        ("entries/search", {"prompt": OTHER, "searchStrategies": ["semantic"]}),
        ("entries", {"prompt": OTHER, "response": "x"}),
        ("explain", {"prompt": OTHER}),
    ):
        begun = time.monotonic()
        assert_problem(cache.post(rest, body), Code.EMBEDDER_UNAVAILABLE)
        assert time.monotonic() - begun < 3
    (item,) = cache.post("entries/batch", {"entries": [{"prompt": OTHER, "response": "x"}]}).json()["data"]
    assert (item["status"], item["error"]["code"]) == (424, "embedder_unavailable")
    assert cache.look(OTHER, searchStrategies=["exact"])["data"] == []
    assert [row["prompt"] for row in cache.listed()] == [ASKED]
    stats = cache.http.get(f"{cache.path}/stats").json()
    assert (stats["errors"], stats["missReasons"]["embedder_unavailable"]) == (2, 2)
    embeddings.reply = None
    embeddings.hang.set()
    deadline = time.monotonic() + 20
    while cache.post("entries", {"prompt": OTHER, "response": "on the wall"}).status_code != 201:
        assert time.monotonic() < deadline
    assert cache.responses(OTHER, searchStrategies=["semantic"]) == ["on the wall"]


def test_a_service_starts_without_its_embedder_and_finds_it_later(
    settings: Settings, embeddings: EmbeddingServer
) -> None:
    embeddings.reply = (503, {"error": "loading"})
    remote = {"embedder": "remote", "embedder_url": embeddings.url, "embedder_model": "enc", "embedder_timeout": 0.5}
    with running_service(settings.model_copy(update=remote)) as service:
        cache = Cache(service.http, "default")
        readiness = service.http.get("/readyz").json()
        assert (readiness["status"], readiness["waitingFor"]) == ("degraded", [])
        assert readiness["embedder"].startswith("not open: ")
        assert_problem(cache.post("entries", {"prompt": ASKED, "response": "x"}), Code.EMBEDDER_UNAVAILABLE)
        cache.send("PATCH", "", {"policy": {"mode": "exact"}})
        embeddings.reply = None
        deadline = time.monotonic() + 20
        while cache.post("entries", {"prompt": ASKED, "response": "above the stove"}).status_code != 201:
            assert time.monotonic() < deadline
        assert cache.responses(NEAR) == ["above the stove"]
        assert service.http.get("/readyz").json() == {"status": "ready", "waitingFor": []}


def test_another_model_under_the_same_name_is_a_generation_of_its_own(
    service: Service, cache: Cache, embeddings: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.embed.remote.PROBE_INTERVAL", 0.0)
    cache.store(ASKED, "above the stove")
    embedded = service.runtime.embedder.counts.texts
    embeddings.weights = "second"
    deadline = time.monotonic() + 20
    while cache.post("entries", {"prompt": OTHER, "response": "on the wall"}).status_code != 201:
        assert time.monotonic() < deadline
    assert service.runtime.embedder.counts.texts > embedded > 0
    assert cache.responses(ASKED) == ["above the stove"]
    assert cache.responses(NEAR) == [], "a vector of the first model was compared with one of the second"
    assert cache.responses(OTHER, searchStrategies=["semantic"]) == ["on the wall"]
