"""What asking ahead is worth, and by which centrality: sessions replayed in time order at an equal upstream budget.

    python benchmarks/prefetch.py [--budget 1.25] [--ttl 900,7200] [--half second] [--json FILE]

reads sessions_multiwoz, sessions_sgd, trace_support_timing and trace_weblog_semicomplete in the folder that
SEMCACHE_BENCH_DATA names. Answers end after the ttl (seconds); graphs know the past only; the second half of the time
counts, or for choosing a default the first (from a fifth on). Each policy asks ahead just so often that demand and
asking ahead together make `--budget` times the calls that the cache makes alone. A node is what two users would ask
alike: dialogue acts, service and intent with acts, or a page. Intervals are 95 %, by resampling sessions; against
popularity, on the same resamples.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.prefetching.foresight import foresee
from benchmarks.prefetching.replay import Outcome, replay, replay_refresh_on_hit
from benchmarks.prefetching.traces import Trace, traces

SCORERS = ("random", "popularity", "markov", "ppm-2", "pagerank", "betweenness")
REFERENCE = "popularity"
HALVINGS = 10
MOST_CALLS = 0.03  # ahead, a second
HALVES = {"first": (0.2, 0.5), "second": (0.5, 1.0)}
RESAMPLES = 1000


@dataclass
class Row:
    """Shares, 0 to 1. gain: hit rate less that of the reference, with its interval."""

    trace: str
    ttl: float
    policy: str
    calls: float
    hit_rate: float
    hits_per_call: float
    gain: float
    low: float
    high: float
    precision: float
    coverage: float
    wasted_tokens: int
    lead: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=1.25)
    parser.add_argument("--ttl", default="900,7200")
    parser.add_argument("--half", choices=("first", "second"), default="second")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    ttls, half = [float(ttl) for ttl in options.ttl.split(",")], HALVES[options.half]
    rows = [row for trace in traces() for row in _rows(trace, ttls, options.budget, half)]
    _print(rows)
    if options.json:
        options.json.write_text(json.dumps([vars(row) for row in rows], indent=1) + "\n")


def _rows(trace: Trace, ttls: list[float], budget: float, half: tuple[float, float]) -> list[Row]:
    shares, rates = foresee(trace)
    counted = half[0] * trace.requests[-1].at, half[1] * trace.requests[-1].at + 1
    rows = []
    for ttl in ttls:
        alone = replay_refresh_on_hit(trace, ttl, counted, part=0.0)
        most = budget * alone.calls

        def ahead(name: str | None, ttl: float = ttl, most: float = most) -> Outcome:
            chosen = shares[name] if name else None
            return _within(most, MOST_CALLS, lambda c: replay(trace, ttl, counted, shares=chosen, rates=rates, calls=c))

        outcomes = {"none": alone} | {name: ahead(name) for name in SCORERS}
        outcomes["refresh on hit"] = _within(
            most, 1.0, lambda part, ttl=ttl: replay_refresh_on_hit(trace, ttl, counted, part=part)
        )
        outcomes["oracle"] = ahead(None)
        rows += [
            _row((trace.name, ttl), name, outcome, alone=alone, reference=outcomes[REFERENCE])
            for name, outcome in outcomes.items()
        ]
    return rows


def _within(most: float, widest: float, run: Callable[[float], Outcome]) -> Outcome:
    """The run with the widest setting whose calls stay within `most`."""
    low, high, best = 0.0, widest, run(0.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = run(middle)
        if found.calls <= most:
            low, best = middle, found
        else:
            high = middle
    return best


def _row(where: tuple[str, float], policy: str, found: Outcome, *, alone: Outcome, reference: Outcome) -> Row:
    low, high = _interval(found, reference)
    return Row(
        *where,
        policy,
        calls=found.calls / alone.calls,
        hit_rate=found.hit_rate,
        hits_per_call=sum(found.hits.values()) / max(1, found.calls),
        gain=found.hit_rate - reference.hit_rate,
        low=low,
        high=high,
        precision=found.used / max(1, found.ahead),
        coverage=(alone.misses - found.misses) / max(1, alone.misses),
        wasted_tokens=found.tokens_ahead - found.tokens_used,
        lead=statistics.median(found.leads) if found.leads else 0.0,
    )


def _interval(found: Outcome, reference: Outcome) -> tuple[float, float]:
    sessions = sorted(found.asked)
    asked = np.array([found.asked[name] for name in sessions])
    more = np.array([found.hits[name] - reference.hits[name] for name in sessions])
    drawn = np.random.default_rng(5).integers(0, len(sessions), (RESAMPLES, len(sessions)))
    gains = more[drawn].sum(axis=1) / asked[drawn].sum(axis=1)
    return float(np.quantile(gains, 0.025)), float(np.quantile(gains, 0.975))


def _print(rows: list[Row]) -> None:
    names = "trace, ttl s, policy, calls, hit rate, hits per call, against popularity, used, coverage, wasted, lead s"
    print("|", names.replace(", ", " | "), "|")
    print("|---" * 11 + "|")
    for row in rows:
        print(
            f"| {row.trace} | {row.ttl:g} | {row.policy} | {row.calls:.2f} | {100 * row.hit_rate:.1f} % "
            f"| {row.hits_per_call:.2f} | {100 * row.gain:+.1f} [{100 * row.low:+.1f}, {100 * row.high:+.1f}] "
            f"| {100 * row.precision:.0f} % | {100 * row.coverage:.0f} % | {row.wasted_tokens} | {row.lead:.0f} |"
        )


if __name__ == "__main__":
    main()
