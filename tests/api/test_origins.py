"""While no key exists nobody but this machine may ask, and no web page that is open on it."""

from __future__ import annotations

import httpx
import pytest
from calls import assert_problem
from processes import run
from running import Service

from service.errors import Code

FOREIGN = [
    {"host": "rebound.example"},
    {"host": "192.0.2.1:8080"},
    {"host": "localhost.example"},
    {"host": "["},
    {"origin": "https://page.example"},
    {"origin": "null"},
    {"origin": "http://["},
]
LOCAL = [{"host": "localhost:8080"}, {"host": "[::1]:1"}, {"origin": "http://localhost:3000"}, {"host": "127.0.0.2"}]


@pytest.mark.parametrize("headers", FOREIGN)
def test_another_origin_is_refused_while_no_key_exists(http: httpx.Client, headers: dict[str, str]) -> None:
    got = http.post("/v1/caches/default/flush", headers=headers)
    assert_problem(got, Code.FORBIDDEN_ORIGIN, "pgsemcache keys create --tenant NAME")
    refused = http.post("/v1/chat/completions", json={}, headers=headers)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["type"]) == (403, "forbidden_origin", "permission_error")


@pytest.mark.parametrize("headers", LOCAL)
def test_this_machine_may_ask(http: httpx.Client, headers: dict[str, str]) -> None:
    assert http.get("/v1/caches/default", headers=headers).status_code == 200


def test_once_a_key_exists_it_alone_counts(service: Service) -> None:
    elsewhere = {"host": "cache.example", "origin": "https://page.example"}
    assert_problem(service.http.get("/v1/caches/default", headers=elsewhere), Code.FORBIDDEN_ORIGIN)
    url = service.runtime.db.url
    status, key, err = run("pgsemcache", "keys", "create", "--tenant", "north", "--database-url", url)
    assert status == 0, err
    assert_problem(service.http.get("/v1/caches/default", headers=elsewhere), Code.UNAUTHENTICATED)
    keyed = elsewhere | {"authorization": f"Bearer {key.strip()}"}
    assert service.http.get("/v1/caches/default", headers=keyed).status_code == 200
