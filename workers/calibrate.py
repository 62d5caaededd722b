"""Fits what caches learn: the model and boundary of `calibrated`, the fits of `verified`, how frequent words are."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from uuid import UUID

from service.policy.boundary import Budget, strict
from service.policy.cache_policy import read_policy
from service.policy.calibrated import Calibration
from service.policy.policies import Learned
from service.policy.signals import Frequencies
from service.policy.training import fit_calibration
from service.policy.verified import fit
from service.store import calibrations, observations
from service.store.calibrations import Due
from service.store.database import Database
from service.store.observations import Observed
from service.store.rows import Labels

COUNTED = 20_000  # entries whose words are counted
WORDS = 5_000
FORGOTTEN = 10_000  # observations beyond the window that one run removes
ENOUGH = 0.02  # further labels, as a share of those that the last fit had, that are worth another

NO_LIBRARY = 'scikit-learn where the worker runs: pip install "pgsemcache[learn]"'


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Of how many caches something was fitted, and on how many labelled candidates."""

    caches: int
    observations: int


async def run_once(db: Database, window: timedelta, most: int) -> Calibrated:
    """Fit each cache that has something new, on at most so many observations of the window."""
    wanted = [due for due in await calibrations.due(db) if wants_fit(due)]
    seen = [await _calibrate(db, due, datetime.now(UTC) - window, most) for due in wanted]
    return Calibrated(len(seen), sum(seen))


def wants_fit(due: Due) -> bool:
    """Whether what is new is worth a fit: a verdict of wrong always is, a further label only where there are few."""
    if not due.last:
        return due.grown
    if due.requests and (due.alarming or due.requests >= ENOUGH * due.observations):
        return True
    return due.grown or due.old or due.budget != read_policy(due.cache.policy).budget


async def _calibrate(db: Database, due: Due, since: datetime, most: int) -> int:
    cache = due.cache
    begin = max(since, due.tightened_at or since)
    observed = await observations.window(db, cache, due.embedder_id, since=begin, limit=most)
    exact = (await observations.traffic(db, cache, observed[0].at)).exact_hits if observed else 0
    frequencies = await calibrations.frequencies(db, cache, entries=COUNTED, words=WORDS)
    budget = read_policy(cache.policy).budget
    learned, entries = await asyncio.to_thread(_learn, observed, budget, frequencies, exact, due.learned)
    await calibrations.save(
        db, cache, due.embedder_id, learned, last=due.last, tightened_at=due.tightened_at, entries=entries
    )
    await observations.forget(db, cache, before=since, limit=FORGOTTEN)
    return len(observed)


def _learn(
    observed: Sequence[Observed], budget: Budget, frequencies: Frequencies, exact_hits: int, learned: int
) -> tuple[Learned, dict[UUID, Labels]]:
    drawn = [o for o in observed if o.inclusion is not None]
    tried = _tried(drawn)
    pooled = fit([label for labels in tried.values() for label in labels])
    counts = Counter((o.entry_id, o.correct) for o in drawn)
    entries = {
        entry_id: Labels(counts[entry_id, True], counts[entry_id, False], fit(tried[entry_id]))
        for entry_id in {o.entry_id for o in drawn if o.observation_id > learned}
    }
    return Learned(_model(observed, budget, exact_hits), frequencies, pooled), entries


def _model(observed: Sequence[Observed], budget: Budget, exact_hits: int) -> Calibration:
    if find_spec("sklearn") is None:
        return Calibration(budget, strict(NO_LIBRARY), None, len({o.request_id for o in observed}))
    return fit_calibration(observations.to_train_on(observed), budget, exact_hits=exact_hits)


def _tried(drawn: Sequence[Observed]) -> dict[UUID, list[tuple[float, bool]]]:
    """By entry, the labels of the candidates that `verified` would try: the nearest that no guard doubts."""
    tried: dict[UUID, Observed] = {}
    for o in drawn:
        if not o.signals.doubts:
            tried.setdefault(o.request_id, o)
    labels: dict[UUID, list[tuple[float, bool]]] = defaultdict(list)
    for o in tried.values():
        labels[o.entry_id].append((o.similarity, o.correct))
    return labels


__all__ = ["Calibrated", "run_once", "wants_fit"]
