"""Removes what nobody can be served any more, a batch at a time, so that no request waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from service.store.database import Database
from service.store.purge import purge

BATCH = 1_000
KEEP_LOG = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Purged:
    """How many rows went, of entries and of the log."""

    rows: int


async def run_once(db: Database) -> Purged:
    """Remove batches until none is left."""
    total = 0
    while removed := await purge(db, limit=BATCH, keep_log=KEEP_LOG):
        total += removed
    return Purged(total)


__all__ = ["Purged", "run_once"]
