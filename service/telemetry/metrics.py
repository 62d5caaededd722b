"""What a process counts, for Prometheus. Labels are closed sets; no prompt, tenant or cache name stands in any.

Every process is scraped at its own port, and Prometheus adds up. What a process merely holds at the moment of a scrape
stands in `service.cache.gauges`.
"""

from __future__ import annotations

import time
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from service.telemetry.sliding import SlidingShare

SECONDS = (0.00005, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
NEAR = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.875, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0)
WINDOW = 300.0  # seconds of the sliding hit rate
SERVED = frozenset({"hit", "semantic_hit", "coalesced", "stale"})  # outcomes that spare a call to the model


class Metrics:
    """One set for each process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.lookups = self._counter(
            "semcache_lookups_total",
            "Requests by outcome (hit, semantic_hit, miss, …) and reason.",
            "outcome",
            "reason",
        )
        self.lookup_seconds = self._histogram(
            "semcache_lookup_seconds",
            "Time that the cache took, by tier (l1, exact, semantic, flight, stale, none: not served), by reason, and "
            "by how often this replica had served the entry: cold, warm up to 9 times, hot; none: no entry.",
            SECONDS,
            "tier",
            "hotness",
            "reason",
        )
        self.stage_seconds = self._histogram(
            "semcache_stage_seconds",
            "Time of each stage: identity, l1, exact, embed, neighbours, decide, store, and upstream, the whole of the "
            "model's answer.",
            SECONDS,
            "stage",
        )
        self.similarity = self._histogram(
            "semcache_nearest_similarity",
            "Cosine similarity of the nearest entry that was looked at, by outcome: hits, and misses that were near.",
            NEAR,
            "outcome",
        )
        self.guards = self._counter(
            "semcache_guards_fired_total",
            "Near entries that a guard kept back (block) or put in doubt (gray).",
            "guard",
            "outcome",
        )
        self.tokens_saved = self._counter(
            "semcache_tokens_saved_total", "Tokens that the model would have counted for served answers."
        )
        self.tokens_spent = self._counter(
            "semcache_tokens_spent_total", "Tokens that the model counted for fresh answers."
        )
        self.seconds_saved = self._counter(
            "semcache_seconds_saved_total", "Time that the model had taken for the stored answers that were served."
        )
        self.seconds_spent = self._counter(
            "semcache_seconds_spent_total", "Time that the model took for fresh answers."
        )
        self._recent = SlidingShare(WINDOW)
        self.hit_ratio = Gauge(
            "semcache_hit_ratio",
            "Share of the requests of the last five minutes that were served; NaN where there was none.",
            registry=self.registry,
        )
        self.hit_ratio.set_function(lambda: self._recent.share(time.monotonic()))
        self.rewrites = self._counter(
            "semcache_rewrites_total",
            "Questions of a conversation that were to be rewritten: rewritten, remembered, or failed.",
            "outcome",
        )
        self.rewrite_seconds = self._histogram("semcache_rewrite_seconds", "Time of a call of the resolver.", SECONDS)

        self.observations = self._counter(
            "semcache_observations_total",
            "Near entries whose answer was compared with a fresh one, by source and verdict "
            "(correct, wrong, stale, unclear).",
            "source",
            "verdict",
        )
        self.unobserved = self._counter(
            "semcache_observations_dropped_total",
            "Requests whose answers were not compared or judged: too long, too many waiting, or the database away.",
        )
        self.judgements = self._counter(
            "semcache_judgements_total",
            "What the judge said (yes, no, none) to each question (is_right, say_same).",
            "question",
            "said",
        )
        self.judge_seconds = self._histogram("semcache_judge_seconds", "Time of a call of the judge.", SECONDS)
        self.second_stages = self._counter(
            "semcache_second_stages_total",
            "Near entries in doubt that a second stage (cross_encoder, judge) accepted, rejected or failed to judge.",
            "stage",
            "outcome",
        )
        self.audits = self._counter(
            "semcache_audits_total",
            "Served hits that were asked again, by what came of it (correct, wrong, stale, unclear, failed).",
            "outcome",
        )
        self.aliases = self._counter(
            "semcache_aliases_total", "Requests that are exact hits since the judge found a near entry right."
        )

        self.lookup = cache(self.lookups.labels)  # finding a child by its labels costs more than counting
        self.answered = cache(self.lookup_seconds.labels)
        self.stage = cache(self.stage_seconds.labels)
        self.nearest = cache(self.similarity.labels)

    def count(self, outcome: str, reason: str) -> None:
        """One request has ended."""
        self.lookup(outcome, reason).inc()
        self._recent.add(time.monotonic(), part=outcome in SERVED)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)


__all__ = ["SERVED", "Metrics"]
