"""What a replica holds at the moment of a scrape, and what the workers last noted, for Prometheus."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from service.cache.runtime import Runtime
from service.errors import SemcacheError
from service.policy.bounds import wilson
from service.resources import version
from service.store import tasks
from service.store.tasks import TaskRow

CONFIDENCE = 0.975  # of each side: 95 % between the two
Values = float | Mapping[tuple[str, ...], float]  # one value, or one for each tuple of labels


@dataclass(frozen=True, slots=True)
class Shown:
    """A metric as /metrics describes it."""

    text: str
    labels: tuple[str, ...] = ()
    counts: bool = False


SHOWN = {
    "semcache_build_info": Shown("The release, as a label of the value 1.", ("version",)),
    "semcache_database_up": Shown("1 while the database is tried, 0 while the breaker is open."),
    "semcache_breaker_openings": Shown("How often the breaker opened.", counts=True),
    "semcache_pool_connections": Shown("Database connections that are open, free, and allowed.", ("state",)),
    "semcache_pool_waiting": Shown("Lookups that wait for a connection."),
    "semcache_pool_wait_seconds": Shown("Time that lookups waited for a connection.", counts=True),
    "semcache_l1_live": Shown("1 while a lease is held, so that process memory may serve."),
    "semcache_l1_entries": Shown("Requests in process memory."),
    "semcache_l1_bytes": Shown("Bytes of answers in process memory."),
    "semcache_flights": Shown("Calls to the model under way that equal requests may follow."),
    "semcache_leads": Shown("Calls that this replica makes for all others."),
    "semcache_background_tasks": Shown("Lookups and calls under way, those included that nobody waits for any more."),
    "semcache_request_log_waiting": Shown("Log rows that are not written yet."),
    "semcache_request_log_dropped": Shown("Log rows dropped since the database was away or refused them.", counts=True),
    "semcache_models_failing": Shown("Served models whose server does not answer probes."),
    "semcache_embedder_up": Shown("1 while the embedder is open."),
    "semcache_embedder_waiting": Shown("Texts that wait to be embedded."),
    "semcache_embedder_batches": Shown("Batches embedded.", counts=True),
    "semcache_embedder_texts": Shown("Texts embedded.", counts=True),
    "semcache_embedder_coalesced": Shown("Texts that joined an equal one under way.", counts=True),
    "semcache_embedder_remembered": Shown("Texts whose vector was remembered.", counts=True),
    "semcache_task_failures": Shown("Runs in a row of a worker's task that failed.", ("task",)),
    "semcache_task_ended_timestamp_seconds": Shown("When a worker's task last ended, by Unix time.", ("task",)),
    "semcache_task_seconds": Shown("Time of the last run of a worker's task.", ("task",)),
    "semcache_tightened_caches": Shown("Caches that an alarm of drift made stricter within a week."),
    "semcache_evictions": Shown("Entries evicted from caches that were over a limit.", counts=True),
    "semcache_overfull_caches": Shown("Caches that were over a limit at the last look."),
    "semcache_index_recall": Shown(
        "How often the worst approximate index finds the nearest neighbour, 0 to 1; absent where none was tried."
    ),
    "semcache_index_builds": Shown("Approximate indexes built, first ones and later ones.", counts=True),
    "semcache_dead_rows": Shown("Rows of each table that vacuum has not yet removed, as Postgres counts.", ("table",)),
    "semcache_index_waiting": Shown("Scopes that want an approximate index and wait for it."),
    "semcache_prefetches": Shown(
        "Answers asked for ahead in the last month, by what came of them: used, wasted, waiting, failed, …",
        ("outcome",),
    ),
    "semcache_prefetch_tokens": Shown("Tokens spent ahead in the last month, and wasted of these.", ("value",)),
    "semcache_entries": Shown("Entries of all caches, dead ones included."),
    "semcache_hit_entries": Shown("Entries of all caches that were served at least once."),
    "semcache_hits_skew": Shown(
        "How unequally hits fall on entries: standard deviation over mean; absent without hits."
    ),
    "semcache_table_bytes": Shown("Bytes of each table with its indexes, dead rows included.", ("table",)),
    "semcache_false_hit_ratio": Shown(
        "Wrong answers of the last 30 days in all caches, per semantic_hit, or per served_hit, exact ones included: "
        "estimate, low and high of 95 %, from served requests drawn at random. Absent where none was.",
        ("per", "value"),
    ),
}


async def read_gauges(runtime: Runtime) -> Collector:
    """What the metrics of the process itself lack. The workers' part is left out while the database does not answer."""
    rows: Sequence[TaskRow] = ()
    with contextlib.suppress(SemcacheError):
        rows = await tasks.states(runtime.db)
    return _Gauges(
        _process(runtime)
        | _pool(runtime)
        | _embedder(runtime)
        | _tasks(rows)
        | _drift(rows)
        | _figures(rows)
        | _ahead(rows)
        | _evictions(rows)
        | _indexes(rows)
    )


class _Gauges(Collector):
    def __init__(self, values: Mapping[str, Values]) -> None:
        self._values = values

    def collect(self) -> Iterator[Metric]:
        for name, values in self._values.items():
            shown = SHOWN[name]
            family = (CounterMetricFamily if shown.counts else GaugeMetricFamily)(name, shown.text, labels=shown.labels)
            for labels, value in values.items() if isinstance(values, Mapping) else [((), values)]:
                family.add_metric(labels, value)
            yield family


def _process(runtime: Runtime) -> dict[str, Values]:
    return {
        "semcache_build_info": {(version(),): 1},
        "semcache_database_up": runtime.db.up,
        "semcache_breaker_openings": runtime.db.openings,
        "semcache_l1_live": runtime.memory.live,
        "semcache_l1_entries": runtime.memory.entries,
        "semcache_l1_bytes": runtime.memory.bytes,
        "semcache_flights": len(runtime.flights),
        "semcache_leads": runtime.leadership.held,
        "semcache_background_tasks": len(runtime.background),
        "semcache_request_log_waiting": runtime.recorder.waiting,
        "semcache_request_log_dropped": runtime.recorder.dropped,
        "semcache_models_failing": runtime.models.failing,
    }


def _pool(runtime: Runtime) -> dict[str, Values]:
    pool = runtime.db.pool_stats
    if not pool:
        return {}
    return {
        "semcache_pool_connections": {
            ("open",): pool["pool_size"],
            ("free",): pool["pool_available"],
            ("most",): pool["pool_max"],
        },
        "semcache_pool_waiting": pool["requests_waiting"],
        "semcache_pool_wait_seconds": runtime.db.waited,
    }


def _embedder(runtime: Runtime) -> dict[str, Values]:
    embedder, counts = runtime.embedder.embedder, runtime.embedder.counts
    return {
        "semcache_embedder_up": embedder is not None,
        "semcache_embedder_waiting": embedder.waiting if embedder is not None else 0,
        "semcache_embedder_batches": counts.batches,
        "semcache_embedder_texts": counts.texts,
        "semcache_embedder_coalesced": counts.coalesced,
        "semcache_embedder_remembered": counts.remembered,
    }


def _tasks(rows: Sequence[TaskRow]) -> dict[str, Values]:
    ended = [row for row in rows if row.ended is not None]
    return {
        "semcache_task_failures": {(row.name,): row.failures for row in rows},
        "semcache_task_ended_timestamp_seconds": {(row.name,): row.ended or 0 for row in ended},
        "semcache_task_seconds": {(row.name,): row.seconds or 0 for row in ended},
    }


def _drift(rows: Sequence[TaskRow]) -> dict[str, Values]:
    """What the task `drift` noted in its row."""
    taken = next((row.detail for row in rows if row.name == "drift" and "tightened" in row.detail), None)
    return {} if taken is None else {"semcache_tightened_caches": taken["tightened"]}


def _evictions(rows: Sequence[TaskRow]) -> dict[str, Values]:
    """What the task `eviction` noted in its row."""
    taken = next((row.detail for row in rows if row.name == "eviction" and "evicted" in row.detail), None)
    if taken is None:
        return {}
    return {"semcache_evictions": taken["evicted"], "semcache_overfull_caches": taken["caches"]}


def _indexes(rows: Sequence[TaskRow]) -> dict[str, Values]:
    """What the task `index_care` noted in its row."""
    taken = next((row.detail for row in rows if row.name == "index_care" and "builds" in row.detail), None)
    if taken is None:
        return {}
    recall = {} if taken["lowest_recall"] is None else {"semcache_index_recall": taken["lowest_recall"]}
    return recall | {
        "semcache_index_waiting": taken["waiting"],
        "semcache_index_builds": taken["builds"],
        "semcache_dead_rows": {(table,): dead for table, dead in taken["dead_rows"].items()},
    }


def _ahead(rows: Sequence[TaskRow]) -> dict[str, Values]:
    """What the task `prefetch` noted in its row."""
    taken = next((row.detail["month"] for row in rows if row.name == "prefetch" and "month" in row.detail), None)
    if taken is None:
        return {}
    return {
        "semcache_prefetches": {(outcome,): count for outcome, count in taken["outcomes"].items()},
        "semcache_prefetch_tokens": {("spent",): taken["tokens"], ("wasted",): taken["tokens_wasted"]},
    }


def _figures(rows: Sequence[TaskRow]) -> dict[str, Values]:
    """What the task `figures` noted in its row."""
    taken = next((row.detail for row in rows if row.name == "figures" and "entries" in row.detail), None)
    if taken is None:
        return {}
    found: dict[str, Values] = {
        "semcache_entries": taken["entries"],
        "semcache_hit_entries": taken["hit_entries"],
        "semcache_table_bytes": {(table,): size for table, size in taken["table_bytes"].items()},
        "semcache_false_hit_ratio": _false_hits(taken),
    }
    return found | ({"semcache_hits_skew": taken["deviation_hits"] / taken["mean_hits"]} if taken["mean_hits"] else {})


def _false_hits(taken: Mapping[str, Any]) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for kind in ("semantic", "served"):
        labelled, wrong = taken[f"{kind}_labelled"], taken[f"{kind}_wrong"]
        if labelled:
            low, high = wilson(wrong * labelled, labelled, CONFIDENCE)
            found |= {
                (f"{kind}_hit", name): value for name, value in (("estimate", wrong), ("low", low), ("high", high))
            }
    return found


__all__ = ["SHOWN", "read_gauges"]
