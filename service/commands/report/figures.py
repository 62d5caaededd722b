"""The workload report: what was asked, how often it came again, and what a cache could make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from service.commands.report.curve import Curve, miss_curve
from service.commands.report.texts import Texts, read_texts
from service.store.workload import RequestRow, SystemRow, Workload

HITS = ("hit", "semantic_hit", "coalesced", "stale")
THRESHOLDS = (0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99)


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of the requests, 0 to 1. hits: served without a call of their own to the model; coalesced: of these, those
    that shared another's call; stale: those served an expired answer. repeated: exactly the same was asked before: what
    an endless cache would hit.

    near: by threshold, what came again or was so near to a stored prompt, before guards: no policy can hit more.
    """

    requests: int
    distinct: int
    hits: float
    exact_hits: float
    semantic_hits: float
    coalesced: float
    stale: float
    repeated: float
    near: list[tuple[float, float]]
    tokens_saved: int
    tokens_spent: int


@dataclass(frozen=True, slots=True)
class Report:
    rates: Rates
    texts: Texts
    systems: list[SystemRow]
    curve: Curve


def make_report(workload: Workload) -> Report:
    prompts = workload.prompts
    return Report(
        rates=_rates(workload.requests),
        texts=read_texts([row.prompt for row in prompts], [row.prompt_tokens for row in prompts]),
        systems=workload.systems,
        curve=miss_curve(_accesses(workload.requests)),
    )


def _rates(requests: Sequence[RequestRow]) -> Rates:
    count = max(1, len(requests))
    outcomes = Counter(row.outcome for row in requests)
    seen: set[bytes] = set()
    repeats: list[bool] = []
    for row in requests:
        repeats.append(row.request_key is not None and row.request_key in seen)
        if row.request_key is not None:
            seen.add(row.request_key)
    nearest = [1.0 if repeat else row.similarity or 0.0 for row, repeat in zip(requests, repeats, strict=True)]
    return Rates(
        requests=len(requests),
        distinct=len(seen),
        hits=sum(outcomes[name] for name in HITS) / count,
        exact_hits=outcomes["hit"] / count,
        semantic_hits=outcomes["semantic_hit"] / count,
        coalesced=outcomes["coalesced"] / count,
        stale=outcomes["stale"] / count,
        repeated=sum(repeats) / count,
        near=[(least, sum(similarity >= least for similarity in nearest) / count) for least in THRESHOLDS],
        tokens_saved=sum(row.tokens_saved for row in requests),
        tokens_spent=sum(row.tokens_spent for row in requests),
    )


def _accesses(requests: Sequence[RequestRow]) -> list[tuple[bytes, int]]:
    """What a cache would have held for each request; an entry that is gone counts as a usual one."""
    sizes = {row.request_key: row.bytes for row in requests if row.request_key and row.bytes}
    usual = int(median(sizes.values())) if sizes else 1
    return [(row.request_key, sizes.get(row.request_key, usual)) for row in requests if row.request_key]


__all__ = ["Rates", "Report", "make_report"]
