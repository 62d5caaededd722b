"""Failures on the wire: problem+json with stable codes, fields and settings named."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from calls import PROBLEM, Cache, assert_problem, send
from fastapi import FastAPI

from service.api import problems
from service.errors import BY_SQLSTATE, Code, SemcacheError

ASKED = "How do I prune a pear tree?"
JSON = {"content-type": "application/json"}
STABLE = {
    "invalid_data": (422, "/errors/invalid-data"),
    "empty_filter": (400, "/errors/empty-filter"),
    "malformed_body": (400, "/errors/malformed-body"),
    "unauthenticated": (401, "/errors/unauthenticated"),
    "forbidden_origin": (403, "/errors/forbidden-origin"),
    "no_upstream": (404, "/errors/upstream/none"),
    "cache_not_found": (404, "/errors/cache/not-found"),
    "entry_not_found": (404, "/errors/cache/entry/not-found"),
    "job_not_found": (404, "/errors/cache/job/not-found"),
    "route_not_found": (404, "/errors/not-found"),
    "method_not_allowed": (405, "/errors/method-not-allowed"),
    "cache_exists": (409, "/errors/cache/exists"),
    "key_exists": (409, "/errors/key/exists"),
    "body_too_large": (413, "/errors/body-too-large"),
    "embedder_unavailable": (424, "/errors/embeddings/unavailable"),
    "text_too_long": (422, "/errors/embeddings/text-too-long"),
    "foreign_script": (422, "/errors/embeddings/foreign-script"),
    "text_unreadable": (422, "/errors/embeddings/text-unreadable"),
    "dimension_mismatch": (422, "/errors/embeddings/dimensions"),
    "internal": (500, "/errors/internal"),
    "upstream_unreachable": (502, "/errors/upstream/unreachable"),
    "upstream_broken": (502, "/errors/upstream/broken"),
    "database_unavailable": (503, "/errors/database/unavailable"),
    "schema_behind": (503, "/errors/database/schema-behind"),
    "not_cached": (504, "/errors/cache/not-cached"),
    "upstream_timeout": (504, "/errors/upstream/timeout"),
}


def failing_app() -> FastAPI:
    app = FastAPI()
    problems.install(app)

    @app.get("/fail/{name}")
    async def fail(name: str) -> None:
        raise SemcacheError(Code[name], "because \ud800\x00", {"more": [1]})

    @app.get("/crash")
    async def crash() -> None:
        raise RuntimeError("a secret")

    return app


def get(path: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(failing_app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as http:
            return await http.get(path)

    return asyncio.run(ask())


@pytest.mark.parametrize("slug", list(STABLE))
def test_a_released_code_keeps_its_status_and_type(slug: str) -> None:
    code = Code[slug.upper()]
    assert (code.slug, code.value.status, code.value.type) == (slug, *STABLE[slug])


@pytest.mark.parametrize("code", list(Code))
def test_every_code_is_a_problem_on_the_wire(code: Code) -> None:
    got = get(f"/fail/{code.name}")
    body = assert_problem(got, code, "because")
    assert body["more"] == [1]
    assert json.loads(got.content)["detail"] == "because \ud800\x00"
    assert (got.headers.get("retry-after") == "1") == (got.status_code == 503)
    assert (got.headers.get("www-authenticate") == "Bearer") == (got.status_code == 401)


def test_a_new_code_is_written_down_here_before_its_release() -> None:
    assert {code.slug for code in Code} == STABLE.keys()


def test_codes_do_not_share_a_type_or_a_sqlstate() -> None:
    assert len({code.value.type for code in Code}) == len(Code)
    assert len(BY_SQLSTATE) == len([code for code in Code if code.value.sqlstate])


def test_a_fault_of_ours_tells_no_secret() -> None:
    got = get("/crash")
    assert_problem(got, Code.INTERNAL)
    assert "secret" not in got.text


def test_unknown_routes_and_methods_are_problems(cache: Cache) -> None:
    for path in ("/", "/v2", f"{cache.path}/nothing", f"{cache.entries}/a/b"):
        assert_problem(cache.http.get(path), Code.ROUTE_NOT_FOUND)
    got = cache.http.put(cache.path)
    assert_problem(got, Code.METHOD_NOT_ALLOWED)
    assert got.headers["allow"], "RFC 9110 wants Allow in a 405"


@pytest.mark.parametrize("rest", ["entries", "entries/search", "entries/batch", "explain", "feedback"])
@pytest.mark.parametrize(
    "body",
    [b"{", b"nothing", b'{"prompt": "\xff"}', b'{"prompt": "x"} more', b"{'prompt': 'x'}", b"[" * 100_000],
    ids=["half", "word", "invalid UTF-8", "tail", "quotes", "deep"],
)  # fmt: skip
def test_a_body_that_is_no_json_is_malformed(cache: Cache, rest: str, body: bytes) -> None:
    got = cache.http.post(f"{cache.path}/{rest}", content=body, headers=JSON)
    assert_problem(got, Code.MALFORMED_BODY, "JSON in UTF-8", "SEMCACHE_MAX_JSON_DEPTH")


@pytest.mark.parametrize("rest", ["entries", "entries/search", "entries/batch-search", "explain", "feedback"])
@pytest.mark.parametrize("body", [b"[]", b"null", b"5", b'"text"'])
def test_a_body_that_is_no_object_is_refused(cache: Cache, rest: str, body: bytes) -> None:
    got = cache.http.post(f"{cache.path}/{rest}", content=body, headers=JSON)
    assert_problem(got, Code.INVALID_DATA, "body: must be a JSON object")


@pytest.mark.parametrize("rest", ["entries", "entries/search", "entries/batch-search", "explain", "feedback"])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "json", ""])
def test_a_body_that_is_not_said_to_be_json_is_refused(cache: Cache, rest: str, kind: str) -> None:
    got = cache.http.post(f"{cache.path}/{rest}", content=b'{"prompt": "x"}', headers={"content-type": kind})
    assert_problem(got, Code.INVALID_DATA, "content-type: application/json")


def test_numbers_that_json_has_not_are_refused(cache: Cache) -> None:
    search = f"{cache.entries}/search"
    threshold = '{"prompt": "x", "similarityThreshold": NUMBER}'
    temperature = '{"prompt": "x", "scope": {"sampling": {"temperature": NUMBER}}}'
    for number in ("NaN", "Infinity", "-Infinity", "1e999"):
        for body in (threshold, temperature):
            got = cache.http.post(search, content=body.replace("NUMBER", number), headers=JSON)
            assert_problem(got, Code.INVALID_DATA)
    got = cache.http.post(search, content=temperature.replace("NUMBER", "9" * 5000), headers=JSON)
    assert_problem(got, Code.MALFORMED_BODY, "4300 digits")


BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "", {"name": "x"}),
    ("PATCH", "/{cache}", {"policy": {}}),
    ("POST", "/{cache}/entries", {"prompt": "x", "response": "y"}),
    ("POST", "/{cache}/entries/search", {"prompt": "x"}),
    ("POST", "/{cache}/entries/batch", {"entries": [{"prompt": "x", "response": "y"}]}),
    ("POST", "/{cache}/entries/batch-search", {"searches": [{"prompt": "x"}]}),
    ("PATCH", f"/{{cache}}/entries/{'0' * 32}", {}),
    ("DELETE", "/{cache}/entries", {"tags": ["x"]}),
    ("POST", "/{cache}/feedback", {"entryId": "0" * 32, "verdict": "wrong"}),
    ("POST", "/{cache}/explain", {"prompt": "x"}),
]


@pytest.mark.parametrize(("method", "path", "body"), BODIES)
@pytest.mark.parametrize("field", ["nope", "body", "query", "ttl_millis", "\ud800"])
def test_an_unknown_field_is_named(cache: Cache, method: str, path: str, body: dict[str, Any], field: str) -> None:
    got = send(cache.http, method, f"/v1/caches{path.format(cache=cache.name)}", body | {field: 1})
    problem = assert_problem(got, Code.INVALID_DATA)
    if field != "\ud800":
        assert {"field": field, "rule": "there is no such field"} in problem["errors"]


@pytest.mark.parametrize(("method", "path", "body"), BODIES)
def test_a_missing_field_is_named(cache: Cache, method: str, path: str, body: dict[str, Any]) -> None:
    optional = {"policy", "tags"} - ({"policy"} if method == "PATCH" else set())
    for field in body.keys() - optional:
        rest = {name: value for name, value in body.items() if name != field}
        got = send(cache.http, method, f"/v1/caches{path.format(cache=cache.name)}", rest)
        assert_problem(got, Code.INVALID_DATA, f"{field}: Field required")


def test_what_is_wrong_is_told_without_the_text(cache: Cache) -> None:
    secret = "my blood type is AB"
    for body in (
        {"prompt": secret, "response": 5},
        {"prompt": [secret]},
        {"prompt": "x", "response": {"text": secret}},
        {"prompt": "x", "response": "y", "tags": [f"{secret}\x00"]},
        {"prompt": "x", "response": "y", "attributes": {"a": f"{secret}\x00"}},
        {"prompt": "x", "response": "y", "ttlMillis": secret},
        {"prompt": "x", "response": "y", "scope": {"history": secret}},
    ):
        got = cache.post("entries", body)
        assert_problem(got, Code.INVALID_DATA)
        assert secret not in got.text


def test_a_page_has_at_least_one_row(cache: Cache) -> None:
    for bad in ("0", "-1", "x", "1.5", ""):
        assert_problem(cache.http.get(cache.entries, params={"limit": bad}), Code.INVALID_DATA, "limit")


def test_every_answer_carries_a_request_id(cache: Cache) -> None:
    assert len(cache.http.get(cache.path).headers["x-request-id"]) == 32
    own = cache.http.get("/nothing", headers={"x-request-id": "mine-1"})
    assert own.headers["x-request-id"] == "mine-1"
    assert own.headers["content-type"] == PROBLEM
    assert cache.http.get(cache.path, headers={"x-request-id": "a b"}).headers["x-request-id"] != "a b"
