"""The main job over real HTTP, on a real Postgres, with real embeddings."""

from __future__ import annotations

from running import Service

ENTRIES = "/v1/caches/default/entries"


def test_a_stored_answer_is_found_by_the_same_prompt(service: Service) -> None:
    stored = service.http.post(ENTRIES, json={"prompt": "When do figs ripen?", "response": "In August."})
    assert stored.status_code == 201
    found = service.http.post(f"{ENTRIES}/search", json={"prompt": "When do figs ripen?"}).json()
    assert [row["id"] for row in found["data"]] == [stored.json()["entryId"]]
    assert found["data"][0]["response"] == "In August."
    assert found["data"][0]["searchStrategy"] == "exact"
    assert found["data"][0]["similarity"] == 1
    assert found["reason"] == "same_request"


def test_a_paraphrase_finds_it_by_similarity_and_a_stranger_does_not(service: Service) -> None:
    service.http.post(ENTRIES, json={"prompt": "How do I prune a pear tree?", "response": "In late winter."})
    near = service.http.post(f"{ENTRIES}/search", json={"prompt": "How can I prune a pear tree?"}).json()
    assert near["data"][0]["searchStrategy"] == "semantic"
    assert near["threshold"] <= near["data"][0]["similarity"] < 1
    far = service.http.post(f"{ENTRIES}/search", json={"prompt": "Who wrote this song?"}).json()
    assert far["data"] == []
    assert far["reason"] == "below_threshold"
