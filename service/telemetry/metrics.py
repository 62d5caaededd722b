"""Prometheus metrics. Labels are closed sets; no prompt, tenant or cache name stands in any."""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS = (0.00005, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
NEAR = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.875, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0)


class Metrics:
    """One set for each process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.lookups = Counter(
            "semcache_lookups_total",
            "Lookups by outcome (hit, semantic_hit, miss, …) and reason.",
            ["outcome", "reason"],
            registry=self.registry,
        )
        self.stage_seconds = Histogram(
            "semcache_stage_seconds",
            "Time of each stage of a lookup (l1, exact, embed, neighbours, decide).",
            ["stage"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.similarity = Histogram(
            "semcache_nearest_similarity",
            "Cosine similarity of the nearest entry that was looked at, by outcome.",
            ["outcome"],
            buckets=NEAR,
            registry=self.registry,
        )
        self.guards = Counter(
            "semcache_guards_fired_total",
            "Near entries that a guard kept back (block) or put in doubt (gray).",
            ["guard", "outcome"],
            registry=self.registry,
        )
        self.rewrites = Counter(
            "semcache_rewrites_total",
            "Questions of a conversation that were to be rewritten: rewritten, remembered, or failed.",
            ["outcome"],
            registry=self.registry,
        )
        self.rewrite_seconds = Histogram(
            "semcache_rewrite_seconds", "Time of a call of the resolver.", buckets=SECONDS, registry=self.registry
        )
        self.tokens_saved = Counter(
            "semcache_tokens_saved_total",
            "Tokens that the model would have counted for served answers.",
            registry=self.registry,
        )
        self.l1_entries = Gauge("semcache_l1_entries", "Requests in process memory.", registry=self.registry)
        self.l1_bytes = Gauge("semcache_l1_bytes", "Bytes of answers in process memory.", registry=self.registry)
        self.database_up = Gauge(
            "semcache_database_up",
            "1 while the database is tried, 0 while the breaker is open.",
            registry=self.registry,
        )
        self.dropped = Gauge(
            "semcache_request_log_dropped", "Log rows dropped since the start.", registry=self.registry
        )
        self.task_failures = Gauge(
            "semcache_task_failures", "Runs in a row of a worker's task that failed.", ["task"], registry=self.registry
        )
        self.task_ended = Gauge(
            "semcache_task_ended_timestamp_seconds",
            "When a worker's task last ended, by Unix time.",
            ["task"],
            registry=self.registry,
        )
        self.task_seconds = Gauge(
            "semcache_task_seconds", "Time of the last run of a worker's task.", ["task"], registry=self.registry
        )

        self.lookup = cache(self.lookups.labels)  # finding a child by its labels costs more than counting
        self.stage = cache(self.stage_seconds.labels)
        self.nearest = cache(self.similarity.labels)


__all__ = ["Metrics"]
