"""What operators and readers of the API get: health, readiness, metrics, the OpenAPI document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from calls import Cache
from openapi_document import OPENAPI_FILE, rendered
from prometheus_client.parser import text_string_to_metric_families

OPERATIONS = {"/healthz", "/readyz", "/metrics"}


def test_health_readiness_and_pages_answer(http: httpx.Client) -> None:
    assert http.get("/healthz").json() == {"status": "ok"}
    assert http.get("/readyz").json() == {"status": "ready", "waitingFor": []}
    assert "swagger" in http.get("/docs").text


def test_metrics_count_lookups_by_outcome(cache: Cache) -> None:
    def counted(outcome: str) -> float:
        families = text_string_to_metric_families(cache.http.get("/metrics").text)
        samples = [s for family in families for s in family.samples if s.name == "semcache_lookups_total"]
        return sum(sample.value for sample in samples if sample.labels["outcome"] == outcome)

    before = {outcome: counted(outcome) for outcome in ("hit", "semantic_hit", "miss")}
    cache.store("How do I prune a pear tree?", "In late winter.")
    for prompt in ("How do I prune a pear tree?", "How can I prune a pear tree?", "Who wrote this song?"):
        cache.look(prompt)
    assert {outcome: counted(outcome) - was for outcome, was in before.items()} == dict.fromkeys(before, 1)


def test_no_name_or_text_stands_in_the_metrics(cache: Cache) -> None:
    cache.store("How do I prune a pear tree?", "In late winter.", scope={"model": "model-of-mine"})
    cache.look("How do I prune a pear tree?", scope={"model": "model-of-mine"})
    shown = cache.http.get("/metrics").text
    assert "semcache_l1_entries" in shown
    assert not [word for word in (cache.name, "pear", "winter", "model-of-mine") if word in shown]


def test_the_openapi_document_is_the_committed_one(http: httpx.Client) -> None:
    """After a wanted change: python tests/openapi_document.py"""
    assert rendered(http.get("/openapi.json").json()) == OPENAPI_FILE.read_text()


def document() -> dict[str, Any]:
    return dict(json.loads(Path(OPENAPI_FILE).read_text()))


def test_every_route_of_the_data_api_is_documented() -> None:
    routes = {f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods}
    cache = "/v1/caches/{cache_id}"
    assert routes >= {
        "POST /v1/caches",
        "GET /v1/caches",
        f"GET {cache}",
        f"PATCH {cache}",
        f"DELETE {cache}",
        f"POST {cache}/flush",
        f"GET {cache}/stats",
        f"POST {cache}/entries/search",
        f"POST {cache}/entries/batch-search",
        f"POST {cache}/entries",
        f"POST {cache}/entries/batch",
        f"GET {cache}/entries",
        f"DELETE {cache}/entries",
        f"GET {cache}/entries/{{entry_id}}",
        f"PATCH {cache}/entries/{{entry_id}}",
        f"DELETE {cache}/entries/{{entry_id}}",
        f"POST {cache}/feedback",
        f"POST {cache}/explain",
    }


def bodies() -> dict[str, dict[str, Any]]:
    found = {}
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/v1/caches") and "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                name = schema.get("$ref", "").rpartition("/")[2]
                found[f"{method.upper()} {path}"] = document()["components"]["schemas"][name] if name else schema
    return found


EXAMPLES = [(route, example) for route, schema in bodies().items() for example in schema.get("examples", [None])]


@pytest.mark.parametrize(("route", "example"), EXAMPLES, ids=[route for route, _ in EXAMPLES])
def test_every_body_has_an_example_that_works(cache: Cache, route: str, example: dict[str, Any]) -> None:
    method, path = route.split(" ")
    entry = cache.store("How do I renew my library card?", "Online, under My account.")
    body = json.loads(json.dumps(example).replace("00000000000000000000000000000000", entry))
    if "name" in body:
        body["name"] = f"{cache.name}-b"
    got = cache.http.request(method, path.format(cache_id=cache.name, entry_id=entry), json=body)
    assert got.is_success, got.text
    if got.headers.get("content-type") == "application/json":
        assert all(row["status"] < 300 for row in got.json().get("data", []) if "status" in row)


def test_failures_are_documented_as_problems() -> None:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            if path in OPERATIONS:
                continue
            for status in ("4XX", "5XX"):
                content = operation["responses"][status]["content"]
                assert content == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}, (
                    f"{method} {path}"
                )
