"""Calls of the data API, as tests make them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from service.errors import Code
from service.json_text import dumps

PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class Cache:
    """One cache of a running service. `path` is its address, `entries` that of its entries."""

    http: httpx.Client
    name: str

    @property
    def path(self) -> str:
        return f"/v1/caches/{self.name}"

    @property
    def entries(self) -> str:
        return f"{self.path}/entries"

    def send(self, method: str, rest: str, body: Any) -> httpx.Response:
        """A body as JSON, whatever text is in it."""
        return send(self.http, method, f"{self.path}/{rest}", body)

    def post(self, rest: str, body: Any) -> httpx.Response:
        return self.send("POST", rest, body)

    def store(self, prompt: str, response: str, **fields: Any) -> str:
        """The new entry's id."""
        stored = self.post("entries", {"prompt": prompt, "response": response, **fields})
        assert stored.status_code == 201, stored.text
        return str(stored.json()["entryId"])

    def look(self, prompt: str, **fields: Any) -> dict[str, Any]:
        """The whole answer of a search."""
        found = self.post("entries/search", {"prompt": prompt, **fields})
        assert found.status_code == 200, found.text
        return dict(found.json())

    def responses(self, prompt: str, **fields: Any) -> list[str]:
        """What a search serves: one response, or none."""
        return [row["response"] for row in self.look(prompt, **fields)["data"]]

    def read(self, entry_id: str) -> dict[str, Any]:
        got = self.http.get(f"{self.entries}/{entry_id}")
        assert got.status_code == 200, got.text
        return dict(got.json())

    def listed(self, limit: int = 100) -> list[dict[str, Any]]:
        """All entries of the listing, page by page."""
        rows: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            asked = {"limit": limit} | ({"cursor": cursor} if cursor else {})
            page = self.http.get(self.entries, params=asked)
            assert page.status_code == 200, page.text
            rows += page.json()["data"]
            cursor = page.json()["nextCursor"]
            if cursor is None:
                return rows


def new_cache(http: httpx.Client, **policy: Any) -> Cache:
    cache = Cache(http, f"test-{uuid4().hex}")
    made = http.post("/v1/caches", json={"name": cache.name, "policy": policy})
    assert made.status_code == 201, made.text
    return cache


def send(http: httpx.Client, method: str, path: str, body: Any) -> httpx.Response:
    """A body as JSON, whatever text is in it."""
    return http.request(method, path, content=dumps(body), headers={"content-type": "application/json"})


def assert_problem(response: httpx.Response, code: Code, *words: str) -> dict[str, Any]:
    """The answer is the problem of this code (RFC 9457), and its detail holds these words."""
    assert response.headers["content-type"] == PROBLEM, response.text
    body = dict(response.json())
    assert body["code"] == code.slug, response.text
    kind = code.value
    assert (response.status_code, body["status"]) == (kind.status, kind.status)
    assert (body["type"], body["title"]) == (kind.type, kind.title)
    assert body["instance"] == response.request.url.path
    for word in words:
        assert word in body["detail"], body["detail"]
    return body
