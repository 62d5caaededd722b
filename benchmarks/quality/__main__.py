"""`python -m benchmarks.quality`: how right the cache is on labelled pairs and streams, with the bundled embedder.

Prints each table when it is done and writes it to `benchmarks/results/quality.json`. SEMCACHE_BENCH_DATA names the
folder of the labelled files. The first run embeds their texts, which takes most of its time; the vectors are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from benchmarks.quality import context, kinds
from benchmarks.quality.cost import Cost, costs
from benchmarks.quality.data import ROOT
from benchmarks.quality.guard_pairs import MustMiss, Rejections, must_miss, rejections
from benchmarks.quality.streams import BUDGETS, LEVELS, RATES, Bench, Row
from benchmarks.quality.tables import Tables
from service.embed.cross_encoder import open_cross_encoder
from service.policy.boundary import Budget
from service.settings import Settings

DEFAULT_THRESHOLD = 0.9
SWEPT = (0.96, 0.93, 0.9, 0.87, 0.84, 0.8, 0.68, 0.6)
PEERS = "RedisVL's default is the static threshold 0.9; GPTCache's is 0.6, with its pgvector store 0.68"


def _head(bench: Bench, tables: Tables) -> None:
    later = slice(bench.half, None)
    share = [sum(s.right for s in run[later]) / len(run[later]) for run in (bench.shadow, bench.best)]
    print(
        f"stream_open, second half: {len(bench.shadow[later])} requests. Exact repeats {share[0]:.1%} hits, a perfect "
        f"decision over the nearest entries {share[1]:.1%}; headroom: the captured share of what lies between."
    )
    print(
        "All that is learned or chosen comes from the first half. Intervals of 95 %, resampled by answer. What the "
        "labels are worth: of the false hits on questions\nthat were never asked before, more than half read by eye "
        "were true duplicates, so rates of false hits are upper bounds."
    )
    print(PEERS)
    tables.keep("exact repeats and perfect decision", share)


def _static(bench: Bench, tables: Tables) -> None:
    for level in (0, 2):
        tables.show(f"{LEVELS[level]}, second half", bench.sweep(level, SWEPT), Row.line)
    chosen = (bench.static(level, budget) for level in range(len(LEVELS)) for budget in BUDGETS)
    tables.show("static, cut chosen on the first half", chosen, Row.line)
    hindsight = (bench.in_hindsight(level, budget) for level in (0, 2) for budget in BUDGETS)
    tables.show("static, the best cut of the second half itself", hindsight, Row.line)


def _learned(bench: Bench, tables: Tables) -> None:
    rows = (bench.learned(kind, budget)[0] for kind in ("logistic", "trees") for budget in BUDGETS)
    tables.show("calibrated", rows, Row.line)
    blind = Bench(compare_answers=False)
    tables.show(
        "calibrated, without knowing which entries share an answer",
        (blind.learned("trees", budget)[0] for budget in BUDGETS),
        Row.line,
    )
    own = (bench.verified(delta, pooled=pooled) for pooled in (False, True) for delta in RATES)
    tables.show("verified, by what it promises itself", own, Row.line)
    within = (bench.verified_within(budget, pooled=pooled) for pooled in (False, True) for budget in BUDGETS)
    tables.show("verified, its promise (under cut) chosen for the budget on the second quarter", within, Row.line)


def _second_stage(bench: Bench, tables: Tables) -> None:
    settings = Settings()
    if settings.cross_encoder is None:
        print("\nsecond stage: not measured, SEMCACHE_CROSS_ENCODER names no model")
        return
    encoder = asyncio.run(open_cross_encoder(settings.cross_encoder, settings.models_dir))
    rows = (bench.second_stage(b, lambda *pair: asyncio.run(encoder.probability(*pair))) for b in BUDGETS)
    tables.show(f"calibrated, what it doubts judged by {settings.cross_encoder}", rows, Row.line)
    asyncio.run(encoder.close())


def _sources(bench: Bench, tables: Tables) -> None:
    """Whether what is learned of some sources serves others: the gain over the static threshold, and by source."""
    for budget in BUDGETS:
        _one_left_out(bench, tables, budget)
    for budget in BUDGETS:
        title = f"calibrated by source, {_promise(budget)}"
        tables.show(title, _by_source(bench, budget), Row.line)


def _one_left_out(bench: Bench, tables: Tables, budget: Budget) -> None:
    promise = _promise(budget)
    left_out = ("", *bench.sources)
    learned = {s: bench.learned("trees", budget, s)[0] for s in left_out}
    static = {s: bench.static(0, budget, without=s) for s in left_out}
    rows = [row for s in left_out for row in (static[s], learned[s])]
    tables.show(f"one source left out of what is learned and chosen, {promise}", rows, Row.line)
    held = bench.in_hindsight(0, budget)
    for name, base in (("chosen as it is", static), ("that keeps the budget", dict.fromkeys(left_out, held))):
        gain = {s: learned[s].figures.headroom - base[s].figures.headroom for s in left_out}
        left = {s: gain[s] / gain[""] if gain[""] > 0 else 0.0 for s in bench.sources}
        print(f"  share of the gain over a static threshold {name}, without: "
              + ", ".join(f"{source} {share:.0%}" for source, share in left.items()))  # fmt: skip
        tables.keep(f"gain left over a static threshold {name}, {promise}", left)


def _by_source(bench: Bench, budget: Budget) -> Iterator[Row]:
    whole, steps = bench.learned("trees", budget)
    for source in bench.sources:
        yield Row(source, budget.rate, budget.per.value, whole.cut, bench.measure(steps, source=source))


def _promise(budget: Budget) -> str:
    return f"{budget.rate:.0%} per {budget.per}"


def _guards(bench: Bench, tables: Tables) -> None:
    tables.show(
        "must-miss pairs: false accepts with guards, and of a plain threshold with equal hits on true paraphrases",
        must_miss(DEFAULT_THRESHOLD),
        MustMiss.line,
    )
    tables.show("true pairs of similarity 0.75 and more that guards reject", rejections(bench), Rejections.line)


def _questions(tables: Tables) -> None:
    """Questions that come again in other words, and follow-ups."""
    tables.show("questions that come again", kinds.measure(), kinds.KindRow.line)
    tables.show("pairs of follow-up questions", context.measure(), context.Served.line)
    replays = (row for name in context.FILES for row in context.replay(name))
    tables.show("turns after the first, session by session at 0.9 with guards", replays, context.Replayed.line)


def main() -> None:
    tables = Tables(ROOT / "benchmarks" / "results" / "quality.json")
    bench = Bench()
    _head(bench, tables)
    _static(bench, tables)
    _learned(bench, tables)
    _second_stage(bench, tables)
    _sources(bench, tables)
    _guards(bench, tables)
    tables.show("processor time of a decision over 4 neighbours", costs(bench), Cost.line)
    _questions(tables)
    print("\nwritten to benchmarks/results/quality.json")


if __name__ == "__main__":
    main()
