"""A policy that asks for what the service was started without."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import pytest
from calls import assert_problem
from conftest import NewDatabase
from running import running_service

from service.errors import Code
from service.settings import Settings

ASKING = [
    ({"secondStage": "judge"}, "SEMCACHE_JUDGE_URL"),
    ({"judgeDoubts": True}, "SEMCACHE_JUDGE_URL"),
    ({"compare": "judge"}, "SEMCACHE_JUDGE_URL"),
    ({"secondStage": "cross_encoder"}, "SEMCACHE_CROSS_ENCODER"),
    ({"context": "rewritten"}, "SEMCACHE_RESOLVER_URL"),
]


@pytest.mark.parametrize(("policy", "setting"), ASKING)
def test_it_is_refused_and_the_setting_named(http: httpx.Client, policy: dict[str, Any], setting: str) -> None:
    (key,) = policy
    got = http.post("/v1/caches", json={"name": f"asks-{key}", "policy": policy})
    assert_problem(got, Code.INVALID_DATA, f"policy.{key}: ", setting)
    assert_problem(http.patch("/v1/caches/default", json={"policy": policy}), Code.INVALID_DATA, setting)
    assert http.get(f"/v1/caches/asks-{key}").status_code == 404


def test_what_was_set_before_is_told_once_and_may_stay(
    new_database: NewDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    with new_database() as url:
        judge = {"judge_url": "http://judge.example/v1", "judge_model": "judge"}
        with (
            running_service(Settings(database_url=url, **judge)) as service,
            httpx.Client(base_url=service.base) as http,
        ):
            made = http.post("/v1/caches", json={"name": "faq", "policy": {"secondStage": "judge"}})
            assert made.status_code == 201, made.text
        caplog.set_level(logging.WARNING, "semcache.cache")
        with running_service(Settings(database_url=url)) as service, httpx.Client(base_url=service.base) as http:
            changes = [{"ttlMillis": 1000}, {"ttlMillis": 2000}, {"secondStage": "cross_encoder"}]
            codes = [http.patch("/v1/caches/faq", json={"policy": change}).status_code for change in changes]
            assert codes == [200, 200, 422]
            assert http.post("/v1/caches/faq/entries/search", json={"prompt": "Is it open?"}).json()["data"] == []
            assert http.patch("/v1/caches/faq", json={"policy": {"secondStage": None}}).status_code == 200
    told = [r.getMessage() for r in caplog.records if r.name == "semcache.cache"]
    assert len(told) == 1
    assert "cache faq of tenant default: policy.secondStage: judge needs SEMCACHE_JUDGE_URL" in told[0]
