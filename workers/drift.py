"""Watches whether wrong answers become more frequent, and makes a cache stricter where they do; never looser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from service.policy.cache_policy import CachePolicy, read_policy
from service.policy.decision import FLOOR
from service.policy.drift import Label, watch
from service.store import calibrations, observations
from service.store.calibrations import Due
from service.store.database import Database
from service.store.observations import Observed

ZONE = 0.1  # of similarity below a threshold: near enough to be in doubt
LEARNED_ZONE = (0.8, 1.0)  # where policies that learn have their boundary
STRICTEST = 0.9999
RECENT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Watched:
    """How many caches have labels, how many of them were made stricter just now, and how many within a week."""

    caches: int
    alarms: int
    tightened: int


async def run_once(db: Database, window: timedelta, most: int) -> Watched:
    """Look at each cache's newest observations of the window, at most so many, since it was last made stricter."""
    now = datetime.now(UTC)
    labelled = [due for due in await calibrations.due(db) if due.last]
    alarms = [await _watch(db, due, now - window, most) for due in labelled]
    recent = [due.tightened_at is not None and due.tightened_at > now - RECENT for due in labelled]
    return Watched(len(labelled), sum(alarms), sum(map(any, zip(alarms, recent, strict=True))))


async def _watch(db: Database, due: Due, since: datetime, most: int) -> bool:
    begin = max(since, due.tightened_at or since)
    observed = await observations.window(db, due.cache, due.embedder_id, since=begin, limit=most)
    policy = read_policy(due.cache.policy)
    watched = {
        "audit": watch(audited(observed), tolerated=policy.budget.rate),
        "gray_zone": watch(in_zone(observed, policy)),
    }
    rung = {name: asdict(alarm) for name, alarm in watched.items() if alarm is not None}
    if rung:
        await calibrations.tighten(db, due.cache, due.embedder_id, policy=tightened(policy), detail={"drift": rung})
    return bool(rung)


def audited(observed: Sequence[Observed]) -> list[Label]:
    """Served answers that were checked by a draw."""
    return [_label(o) for o in observed if o.served and o.inclusion is not None]


def in_zone(observed: Sequence[Observed], policy: CachePolicy) -> list[Label]:
    """The nearest candidate of each request in doubt, whatever became of it.

    Below a threshold nothing is served, so that a change of it does not change what is seen. What learns serves a part
    of its zone: where that part has no labels nothing can be said.
    """
    low, high = LEARNED_ZONE
    if policy.decision == "threshold":
        low, high = max(FLOOR, policy.similarity_threshold - ZONE), policy.similarity_threshold
    elif not policy.labels_hits:
        return []
    nearest: dict[UUID, Observed] = {}
    for o in observed:
        if o.inclusion is not None:
            nearest.setdefault(o.request_id, o)
    return [_label(o) for o in nearest.values() if low <= o.similarity < high]


def _label(observed: Observed) -> Label:
    cluster = observed.answer_key.hex() if observed.answer_key else observed.entry_id.hex
    return Label(not observed.correct, cluster, 1 / observed.inclusion if observed.inclusion else 1.0)


def tightened(policy: CachePolicy) -> dict[str, Any] | None:
    """A threshold halfway to 1. What learns is strict by itself once what it learned is gone."""
    if policy.decision != "threshold":
        return None
    halfway = min(STRICTEST, round((1 + policy.similarity_threshold) / 2, 4))
    return {"similarityThreshold": max(policy.similarity_threshold, halfway)}


__all__ = ["Watched", "audited", "in_zone", "run_once", "tightened"]
