"""A real model as judge and as resolver: a tiny one says nothing clear, so what was in doubt stays a miss."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from calls import new_cache
from conftest import NewDatabase
from observing import counted
from running import Service, running_service

from service.settings import Settings
from tests.vllm.server import MODEL, Vllm


@pytest.fixture(scope="module")
def judging(vllm: Vllm, new_database: NewDatabase) -> Iterator[Service]:
    with new_database() as url:
        settings = Settings(
            database_url=url, upstream=vllm.url, judge_url=vllm.url, judge_model=MODEL, second_stage_deadline=30
        )
        with running_service(settings) as running:
            yield running


def test_a_verdict_that_is_not_clear_serves_nothing(judging: Service) -> None:
    cache = new_cache(judging.http, similarityThreshold=0.999, secondStage="judge")
    entries = f"/v1/caches/{cache.name}/entries"
    stored = {"prompt": "Where may I moor my punt?", "response": "Under the bridge."}
    assert judging.http.post(entries, json=stored).status_code == 201
    found = judging.http.post(f"{entries}/search", json={"prompt": "Where can I moor a punt?"}).json()
    assert (found["data"], found["reason"]) == ([], "second_stage_failed")
    assert counted(judging, "semcache_judgements_total", question="is_right", said="none") == 1
    assert counted(judging, "semcache_second_stages_total", stage="judge", outcome="failed") == 1
