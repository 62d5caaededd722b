"""Guards on labelled pairs: what they stop, and what they reject wrongly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.quality.data import Pair, pair_similarity, pairs
from benchmarks.quality.streams import Bench
from service.policy.guards.checks import Guard, Outcome, check
from service.policy.guards.features import extract

MUST_MISS = (
    "pairs_checklist_qqp",
    "pairs_semcache_adversarial",
    "pairs_bitext_entity",
    "hardneg_gsm8k_number",
    "hardneg_svamp",
)
_SHOWN = 0.001  # the share of true pairs from which a guard is named
_RELEVANT = 0.75  # pairs below this similarity no policy would look at


@dataclass(frozen=True, slots=True)
class MustMiss:
    """False accepts of a guarded threshold and of the plain threshold that hits as many true paraphrases."""

    name: str
    different: int
    guarded_threshold: float
    true_hits: float
    guarded: int
    plain_threshold: float
    plain: int

    def line(self) -> str:
        times = f"{self.plain / self.guarded:.0f} times fewer" if self.guarded else "none left"
        return (
            f"{self.name:28s} {self.different:5d} different; true hits {self.true_hits:6.1%}; with guards "
            f"{self.guarded:4d}, plain at {self.plain_threshold:.3f} {self.plain:5d}: {times}"
        )


@dataclass(frozen=True, slots=True)
class Rejections:
    """The share of true pairs that each guard rejects, with gray counted, and that any does."""

    name: str
    pairs: int
    any: float
    by_guard: dict[str, float]

    def line(self) -> str:
        guards = ", ".join(f"{guard} {share:.1%}" for guard, share in self.by_guard.items() if share >= _SHOWN)
        return f"{self.name:28s} {self.pairs:5d} pairs, any {self.any:6.1%}: {guards}"


def _fired(pair: Pair) -> list[Guard]:
    return [v.guard for v in check(extract(pair.a), extract(pair.b)) if v.outcome is not Outcome.PASS]


def must_miss(threshold: float) -> Iterator[MustMiss]:
    """The plain threshold is set on the true pairs of the same file; files without any take all files' true pairs."""
    loaded = {name: (pairs(name), pair_similarity(name)) for name in MUST_MISS}
    judged = {
        name: [(p.same, float(s), not _fired(p)) for p, s in zip(table, similarity, strict=True)]
        for name, (table, similarity) in loaded.items()
    }
    every = [row for rows in judged.values() for row in rows if row[0]]
    yield from (_compare(name, rows, every, threshold) for name, rows in judged.items())


_Judged = tuple[bool, float, bool]


def _compare(name: str, rows: Sequence[_Judged], every: Sequence[_Judged], threshold: float) -> MustMiss:
    true = [r for r in rows if r[0]] or every
    false = [r for r in rows if not r[0]]
    hits = float(np.mean([s >= threshold and passed for _, s, passed in true]))
    plain = float(np.quantile([s for _, s, _ in true], 1 - hits))
    return MustMiss(
        name=name,
        different=len(false),
        guarded_threshold=threshold,
        true_hits=hits,
        guarded=sum(s >= threshold and passed for _, s, passed in false),
        plain_threshold=plain,
        plain=sum(s >= plain for _, s, _ in false),
    )


def rejections(bench: Bench) -> Iterator[Rejections]:
    """True pairs by origin: those of the stream's neighbours, and of the pair files."""
    sets: dict[str, list[Pair]] = {}
    for step in bench.shadow:
        for n in step.neighbours:
            if n.answer == step.request.answer and n.similarity >= _RELEVANT:
                pair = Pair(step.request.text, bench.stream.texts[n.text], same=True, category="")
                sets.setdefault(f"stream_open/{step.request.source}", []).append(pair)
    for name in ("context_pairs", "pairs_semcache_adversarial", "pairs_advglue_qqp", "pairs_bitext_entity",
                 "pairs_pararel", "pairs_checklist_qqp", "pairs_gptcache_mock"):  # fmt: skip
        close = zip(pairs(name), pair_similarity(name), strict=True)
        sets[name] = [p for p, s in close if p.same and s >= _RELEVANT]
    yield from (_rejections(name, table) for name, table in sets.items())


def _rejections(name: str, table: Sequence[Pair]) -> Rejections:
    fired = [_fired(pair) for pair in table]
    counts = Counter(guard.value for found in fired for guard in found)
    return Rejections(
        name, len(table), sum(map(bool, fired)) / len(table), {g: n / len(table) for g, n in counts.most_common()}
    )


__all__ = ["MustMiss", "Rejections", "must_miss", "rejections"]
