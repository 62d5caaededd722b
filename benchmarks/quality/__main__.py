"""`python -m benchmarks.quality`: the table of issue and design, and the same as JSON under `benchmarks/results`."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.quality import context, kinds
from benchmarks.quality.data import ROOT
from benchmarks.quality.guard_pairs import must_miss, rejections
from benchmarks.quality.streams import BUDGETS, RATES, Bench, Row
from service.embed.cross_encoder import open_cross_encoder
from service.policy.boundary import Budget, Per
from service.policy.calibrated import decide_calibrated
from service.policy.decision import Query, decide_threshold
from service.policy.guards.features import extract
from service.policy.signals import Frequencies
from service.settings import Settings

DEFAULT_THRESHOLD = 0.9


def _show(title: str, rows: list[Row], report: dict[str, Any]) -> None:
    print(f"\n{title}")
    for row in rows:
        print("  " + row.line(), flush=True)
    report[title] = [asdict(row) for row in rows]


def _streams(bench: Bench, report: dict[str, Any]) -> None:
    print("\nRedisVL's default is the static threshold 0.9; GPTCache's is 0.6, with its pgvector store 0.68")
    _show("sweep of static thresholds, second half", [
        row for level in (0, 2) for row in bench.sweep(level, (0.96, 0.93, 0.9, 0.87, 0.84, 0.8, 0.68, 0.6))
    ], report)  # fmt: skip
    _show("static, cut chosen on the first half", [bench.static(n, b) for n in (0, 1, 2) for b in BUDGETS], report)
    learned = [bench.learned(kind, budget)[0] for kind in ("logistic", "trees") for budget in BUDGETS]
    _show("calibrated, model and cut from the first half", learned, report)
    blind = Bench(compare_answers=False)
    blind_rows = [blind.learned("trees", budget)[0] for budget in BUDGETS]
    _show("calibrated, without knowing which entries share an answer", blind_rows, report)
    _show("verified", [bench.verified(d, pooled=p) for p in (False, True) for d in RATES], report)


def _second_stage(bench: Bench, report: dict[str, Any]) -> None:
    settings = Settings()
    if settings.cross_encoder is None:
        print("\nsecond stage: not measured, SEMCACHE_CROSS_ENCODER names no model")
        return
    encoder = asyncio.run(open_cross_encoder(settings.cross_encoder, settings.models_dir))
    rows = [bench.second_stage(b, lambda *pair: asyncio.run(encoder.probability(*pair))) for b in BUDGETS]
    _show(f"calibrated, what it doubts judged by {settings.cross_encoder}", rows, report)
    asyncio.run(encoder.close())


def _sources(bench: Bench, report: dict[str, Any]) -> None:
    """Whether what is learned of some sources serves others: the gain over the static threshold, and by source."""
    sources = sorted({r.source for r in bench.stream.requests})
    for budget in BUDGETS:
        promise = f"{budget.rate:.0%} per {budget.per}"
        both = {
            s: (bench.static(0, budget, without=s), bench.learned("trees", budget, without=s)[0])
            for s in ("", *sources)
        }
        _show(
            f"one source left out of what is learned and chosen, {promise}",
            [r for p in both.values() for r in p],
            report,
        )
        gains = {s: learned.figures.headroom - static.figures.headroom for s, (static, learned) in both.items()}
        kept = {s: gains[s] / gains[""] if gains[""] > 0 else 0.0 for s in sources}
        print("  share of the gain over the static threshold that is left: "
              + ", ".join(f"{source} {share:.0%}" for source, share in kept.items()))  # fmt: skip
        report[f"gain left, {promise}"] = kept
        whole, steps = bench.learned("trees", budget)
        rows = [Row(s, budget.rate, budget.per.value, whole.cut, bench.measure(steps, source=s)) for s in sources]
        _show(f"the same policy by source, {promise}", rows, report)


def _pairs(bench: Bench, report: dict[str, Any]) -> None:
    found = must_miss(DEFAULT_THRESHOLD)
    print("\nmust-miss pairs: false accepts with guards, and of a plain threshold with equal hits on true paraphrases")
    for m in found:
        times = f"{m.plain / m.guarded:.0f} times fewer" if m.guarded else "none left"
        print(f"  {m.name:28s} {m.different:5d} different; true hits {m.true_hits:6.1%}; with guards {m.guarded:4d}, "
              f"plain at {m.plain_threshold:.3f} {m.plain:5d}: {times}")  # fmt: skip
    report["must miss"] = [asdict(m) for m in found]
    print("\ntrue pairs of similarity 0.75 and more that guards reject (gray or block)")
    rejected = rejections(bench)
    for r in rejected:
        print(f"  {r.name:28s} {r.pairs:5d} pairs, any {r.any:6.1%}: "
              + ", ".join(f"{g} {n:.1%}" for g, n in r.by_guard.items() if n >= 0.001))  # fmt: skip
    report["rejections"] = [asdict(r) for r in rejected]


def _questions(report: dict[str, Any]) -> None:
    """Questions that come again in other words, and follow-ups."""
    again, talks = kinds.measure(), context.measure()
    turns = [row for name in context.FILES for row in context.replay(name)]
    kinds.show(again)
    context.show(talks)
    context.show_replays(turns)
    report |= {
        "kinds": list(map(asdict, again)),
        "contexts": list(map(asdict, talks)),
        "turns": list(map(asdict, turns)),
    }


def _cost(bench: Bench, report: dict[str, Any]) -> None:
    calibration = bench.policy("trees", Budget(0.01, Per.SERVED_HIT), "").calibration
    frequencies = Frequencies(1000, {})
    asked = [(s.request.text, bench.texts.candidates(s.neighbours)) for s in bench.shadow[-3000:] if s.neighbours]
    for text, candidates in asked:  # warms the caches of words
        decide_threshold(Query(text, extract(text)), candidates, threshold=DEFAULT_THRESHOLD)
    print("\nprocessor time of a decision over 4 neighbours, features of the query included")
    for name in ("threshold", "calibrated"):
        taken = []
        for text, candidates in asked:
            start = time.thread_time()
            query = Query(text, extract(text))
            if name == "threshold":
                decide_threshold(query, candidates, threshold=DEFAULT_THRESHOLD)
            else:
                decide_calibrated(
                    query, candidates, calibration=calibration, budget=calibration.budget, frequencies=frequencies
                )
            taken.append((time.thread_time() - start) * 1e6)
        p50, p99 = np.percentile(taken, [50, 99])
        print(f"  {name:12s} p50 {p50:.0f} µs, p99 {p99:.0f} µs, mean {np.mean(taken):.0f} µs")
        report[f"cost {name}"] = {"p50": p50, "p99": p99, "mean": float(np.mean(taken))}


def main() -> None:
    bench = Bench()
    report: dict[str, Any] = {}
    later = bench.shadow[bench.half :]
    exact = sum(s.right for s in later) / len(later)
    best = sum(s.right for s in bench.best[bench.half :]) / len(later)
    print(f"stream_open, second half: {len(later)} requests; exact repeats {exact:.1%}, perfect decision {best:.1%}")
    print("Labels: of the false hits on questions that were never asked before, more than half are true duplicates.")
    _streams(bench, report)
    _second_stage(bench, report)
    _sources(bench, report)
    _pairs(bench, report)
    _questions(report)
    _cost(bench, report)
    target = ROOT / "benchmarks" / "results" / "quality.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(f"\nwritten to {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
