"""Lifetimes that adapt against fixed ones: stale answers served, at equal calls to the model.

    python benchmarks/lifetimes.py [--streams 3] [--json FILE]

Each stream is a week of a question every ten seconds, in four scopes of 150 asked by Zipf's law, whose right answers
change at random times that are known here: on average every 2 hours, 12 hours, 4 days and never (mixed), the same with
what changes most asked for most (news), or all of them each day (even); each question has a pace of its own about its
scope's. Lifetimes are those of the policy's rules and the service's SQL. The first quarter does not count. Fixed
lifetimes from five minutes to a day make a curve, where the stale answers at as many calls are read off.
"""

from __future__ import annotations

import argparse
import math
import statistics
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

import numpy as np
import psycopg
from eviction import act_as_worker
from psycopg.types.json import Jsonb
from setting import own_database, table, write_json

from service.policy.cache_policy import LONGEST_STALE_MS, CachePolicy, read_policy
from service.store.queries import query

HOUR, DAY = 3600.0, 86_400.0
SPAN, RATE, QUESTIONS = 7 * DAY, 0.1, 150
WARM, WINDOW = SPAN / 4, 600.0
CHANGES = {"mixed": (2 * HOUR, DAY / 2, 4 * DAY, math.inf), "even": (DAY, DAY, DAY, DAY)}
CHANGES["news"] = CHANGES["mixed"]
POPULAR = {"mixed": (1, 1, 1, 1), "even": (1, 1, 1, 1), "news": (8, 3, 1, 0.5)}
FIXED = (300.0, 900.0, 1800.0, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, DAY)
LEARNED = (("recheck", 900.0), ("recheck", HOUR), ("hit_rate", HOUR))
Ask = tuple[float, int, int]  # second, question, version of the right answer then


def stream(kind: str, seed: int) -> list[Ask]:
    draw = np.random.default_rng(seed)
    weights = np.outer(POPULAR[kind], np.arange(1, QUESTIONS + 1) ** -0.9).ravel()
    changes = [_changes(draw, mean) for mean in CHANGES[kind] for _ in range(QUESTIONS)]
    at = np.sort(draw.uniform(0, SPAN, draw.poisson(RATE * SPAN)))
    asked = draw.choice(weights.size, at.size, p=weights / weights.sum())
    return [(float(t), int(q), int(np.searchsorted(changes[q], t))) for t, q in zip(at, asked, strict=True)]


def _changes(draw: np.random.Generator, mean: float) -> Any:
    if math.isinf(mean):
        return np.empty(0)
    own = mean * draw.lognormal(0, 0.7)
    return np.cumsum(draw.exponential(own, int(2 * SPAN / own) + 20))


@dataclass
class Answer:
    """A stored one. at, ttl: seconds."""

    at: float
    ttl: float
    version: int
    uses: int = 0


@dataclass
class Fixed:
    """All answers live so many seconds."""

    ttl: float

    def lifetime(self, now: Ask, before: Answer | None) -> float:
        return self.ttl

    def note(self, now: Ask, outcome: str) -> None: ...


@dataclass
class Adaptive:
    """What the service and the worker make of a policy."""

    connection: psycopg.Connection[Any]
    policy: CachePolicy
    ids: dict[str, Any]
    scopes: list[int] = field(default_factory=list)
    usual: dict[int, int] = field(default_factory=dict)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    until: float = WINDOW

    def lifetime(self, now: Ask, before: Answer | None) -> float:
        at, question, version = now
        scope = question // QUESTIONS
        if (
            before is None
            or self.policy.adaptive_ttl == "hit_rate"
            or at - before.at - before.ttl > LONGEST_STALE_MS / 1000
        ):
            return self.policy.bounded_ttl(self.usual.get(self.scopes[scope]) or self.policy.ttl_millis or 0) / 1000
        ttl = self.policy.adapted_ttl(before.ttl * 1000, same=version == before.version, uses=before.uses)
        self.connection.execute(query("note_lifetime"), self.ids | {"scope_id": self.scopes[scope], "ttl_ms": ttl})
        self._read()
        return ttl / 1000

    def _read(self) -> None:
        rows = self.connection.execute(
            "select scope_id, ttl_ms from semcache.scope where cache_id = %(cache_id)s and ttl_ms is not null", self.ids
        )
        self.usual = dict(rows.fetchall())

    def note(self, now: Ask, outcome: str) -> None:
        if self.policy.adaptive_ttl != "hit_rate":
            return
        if now[0] > self.until:
            self._end_window()
            self.until += WINDOW
        scope_key = sha256(str(now[1] // QUESTIONS).encode()).hexdigest()
        self.outcomes.append({"cache_id": self.ids["cache_id"], "scope_key": scope_key, "outcome": outcome})

    def _end_window(self) -> None:
        said = {"reason": "same_request", "latency_ms": 0, "tokens_saved": 0, "tokens_spent": 0}
        rows = [outcome | said | {"at": "now"} for outcome in self.outcomes]
        self.connection.execute("select semcache.record_requests(%s, %s)", (self.ids["tenant_id"], Jsonb(rows)))
        self.connection.execute("select semcache.adapt_lifetimes(%s)", (timedelta(hours=1),))
        self.connection.execute("delete from semcache.request_log")
        self.outcomes.clear()
        self._read()


def adaptive(connection: psycopg.Connection[Any], name: str, policy: dict[str, Any]) -> Adaptive:
    cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
    ids: Any = cursor.execute(
        "select t.id as tenant_id, semcache.create_cache(t.id, %s, %s) as cache_id "
        "from semcache.ensure_tenant('bench') t (id)",
        (name, Jsonb(policy)),
    ).fetchone()
    made = Adaptive(connection, read_policy(policy), ids)
    for number in range(4):
        scope: Any = connection.execute(
            "select semcache.ensure_scope(%(tenant_id)s, %(cache_id)s, sha256(%(key)s), 1::smallint, '{}', "
            """sha256('m'), '{"name": "m"}', sha256('{}'), '{}')""",
            ids | {"key": str(number).encode()},
        ).fetchone()
        made.scopes.append(scope[0])
    return made


def replay(asks: list[Ask], rule: Fixed | Adaptive) -> tuple[float, float]:
    """The shares of the requests that called the model, and that got a stale answer."""
    stored: dict[int, Answer] = {}
    asked = calls = stale = 0
    for now in asks:
        at, question, version = now
        counts, before = at > WARM, stored.get(question)
        asked += counts
        if before is not None and at < before.at + before.ttl:
            before.uses += 1
            stale += counts and before.version != version
            rule.note(now, "hit")
        else:
            calls += counts
            stored[question] = Answer(at, rule.lifetime(now, before), version)
            rule.note(now, "miss")
    return calls / asked, stale / asked


def compare(connection: psycopg.Connection[Any], kind: str, seed: int) -> list[dict[str, Any]]:
    asks = stream(kind, seed)
    curve = [(f"fixed, {_text(ttl)}", *replay(asks, Fixed(ttl))) for ttl in FIXED]
    calls, stale = (list(part) for part in zip(*sorted(point[1:] for point in curve), strict=True))
    for learned, ttl in LEARNED:
        policy = {"adaptiveTtl": learned, "ttlMillis": int(ttl * 1000)}
        rule = adaptive(connection, f"{kind}-{seed}-{learned}-{ttl:g}", policy)
        curve.append((f"{learned}, from {_text(ttl)}", *replay(asks, rule)))
    return [
        {"stream": kind, "lifetimes": name, "calls": a, "stale": b, "at equal calls": float(np.interp(a, calls, stale))}
        for name, a, b in curve
    ]


def _text(ttl: float) -> str:
    return f"{ttl / HOUR:g} h" if ttl >= HOUR else f"{ttl / 60:g} min"


def summary(rows: list[dict[str, Any]]) -> list[list[str]]:
    """One line for each stream and rule, over the seeds: means, and the least and the most."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["stream"], row["lifetimes"]), []).append(row)
    return [
        [*name, *(_spread([100 * row[column] for row in group]) for column in ("calls", "stale", "at equal calls"))]
        for name, group in groups.items()
    ]


def _spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.1f} % [{min(values):.1f}, {max(values):.1f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    with own_database() as url, psycopg.connect(url, autocommit=True) as connection:
        act_as_worker(connection)
        rows = [row for kind in POPULAR for seed in range(options.streams) for row in compare(connection, kind, seed)]
    print(table(("stream", "lifetimes", "calls", "stale", "stale if fixed, at equal calls"), summary(rows)))
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
