"""Removes what nobody can be served any more, a batch at a time, so that no request waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from service.store.database import Database
from service.store.purge import purge

BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Purged:
    """How many rows went: entries, and rows of the log and of what replicas have forgotten."""

    rows: int


async def run_once(db: Database, keep_log: timedelta) -> Purged:
    """Remove batches until none is left. keep_log: the age to which rows of the log are kept."""
    total = 0
    while removed := await purge(db, limit=BATCH, keep_log=keep_log):
        total += removed
    return Purged(total)


__all__ = ["Purged", "run_once"]
