"""What /metrics shows: everything that is documented, and values that follow what happened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from calls import Cache
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from running import Service

from service.settings import Settings
from service.store import tasks
from service.store.database import Database, Limits
from workers.runtime import run_claimed
from workers.runtime import tasks as all_tasks

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
# What other tasks of the worker note.
BY_OTHER_TASKS = {
    "semcache_evictions_total",
    "semcache_dead_rows",
    "semcache_index_builds_total",
    "semcache_index_recall",
    "semcache_index_waiting",
    "semcache_overfull_caches",
    "semcache_prefetch_tokens",
    "semcache_prefetches",
    "semcache_tightened_caches",
}
AUDITED = """
insert into semcache.observation (tenant_id, cache_id, entry_id, similarity, verdict, source, served, inclusion)
select c.tenant_id, c.cache_id, gen_random_uuid(), 0.97, v.verdict, 'audit', true, 0.1
from semcache.cache c
cross join unnest(array['wrong', 'correct', 'correct', 'correct']) as v (verdict)
"""


def scrape(service: Service) -> Mapping[str, list[Sample]]:
    families = text_string_to_metric_families(service.http.get("/metrics").text)
    ours = [f for f in families if f.name.startswith("semcache_") and not f.name.endswith("_created")]
    return {f.name + "_total" * (f.type == "counter"): f.samples for f in ours}


def total(samples: list[Sample], suffix: str = "", **labels: str) -> float:
    """The sum of the samples that have these labels; of a histogram those of a suffix."""
    return sum(s.value for s in samples if s.name.endswith(suffix) and labels.items() <= s.labels.items())


@pytest.fixture
def asked(service: Service, database_url: str) -> Service:
    """A service that stored, hit twice exactly and once semantically, and missed near and far."""
    cache = Cache(service.http, "default")
    cache.store("How do I prune a pear tree?", "In late winter.")
    for prompt in (
        "How do I prune a pear tree?",
        "How do I prune a pear tree?",
        "How can I prune a pear tree?",
        "How do I prune 2 pear trees?",
        "Who wrote this song?",
    ):
        cache.look(prompt)
    with psycopg.connect(database_url) as connection:
        connection.execute(AUDITED)
    return service


async def take_figures(url: str) -> None:
    worker = Database(url, Limits(pool_min=1, pool_max=4), role="semcache_worker")
    await worker.open()
    (figures,) = (task for task in all_tasks(Settings()) if task.name == "figures")
    holder = uuid4()
    assert await tasks.claim(worker, "figures", holder, 60) is None
    await run_claimed(worker, figures, holder)
    await worker.close()


async def test_what_is_shown_is_what_is_documented(asked: Service, database_url: str) -> None:
    asked.http.get("/v1/caches/default/stats")  # the log is written before it
    await take_figures(database_url)
    documented = set(re.findall(r"^\| `(semcache_\w+)`", DOCUMENT.read_text(), re.MULTILINE))
    seen = set(scrape(asked))
    assert seen <= documented
    assert documented - seen == BY_OTHER_TASKS


def test_lookups_fall_into_tiers_by_how_often_an_entry_was_served(asked: Service) -> None:
    seconds = scrape(asked)["semcache_lookup_seconds"]

    def counted(tier: str, hotness: str) -> float:
        return total(seconds, "_count", tier=tier, hotness=hotness)

    assert counted("exact", "cold") == 1
    assert counted("l1", "warm") == 1
    assert counted("semantic", "warm") == 1
    assert counted("none", "none") == 2
    assert total(seconds, "_count") == 5


def test_an_entry_that_is_served_again_and_again_is_hot(asked: Service) -> None:
    cache = Cache(asked.http, "default")
    for _ in range(10):
        cache.look("How do I prune a pear tree?")
    seconds = scrape(asked)["semcache_lookup_seconds"]
    assert total(seconds, "_count", tier="l1", hotness="hot") == 3


def test_the_hit_ratio_and_the_stages_follow(asked: Service) -> None:
    shown = scrape(asked)
    assert total(shown["semcache_hit_ratio"]) == pytest.approx(3 / 5)
    stages = shown["semcache_stage_seconds"]
    assert {s.labels["stage"] for s in stages} == {"l1", "exact", "embed", "neighbours", "decide", "store"}
    assert total(stages, "_count", stage="store") == 1
    assert total(shown["semcache_nearest_similarity"], "_count", outcome="miss") == 2
    assert total(shown["semcache_guards_fired_total"]) > 0
    assert total(shown["semcache_embedder_up"]) == total(shown["semcache_database_up"]) == 1
    assert total(shown["semcache_pool_connections"], state="open") >= 2


async def test_false_hits_and_skew_come_from_the_workers_figures(asked: Service, database_url: str) -> None:
    assert "semcache_false_hit_ratio" not in scrape(asked)
    await take_figures(database_url)
    shown = scrape(asked)
    ratio = {(s.labels["per"], s.labels["value"]): s.value for s in shown["semcache_false_hit_ratio"]}
    assert ratio["semantic_hit", "estimate"] == pytest.approx(0.25)
    assert 0 < ratio["semantic_hit", "low"] < 0.25 < ratio["semantic_hit", "high"] < 1
    assert ratio["served_hit", "high"] == ratio["semantic_hit", "high"]
    assert total(shown["semcache_entries"]) == 1
    assert total(shown["semcache_table_bytes"], table="embedding") > 0
    assert total(shown["semcache_task_failures"], task="figures") == 0
