"""Moves the lifetimes of scopes by their hit rate, where a cache's policy says so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from service.store.database import Database
from service.store.lifetimes import adapt_by_hit_rate


@dataclass(frozen=True, slots=True)
class Adapted:
    """How many scopes got another lifetime."""

    scopes: int


async def run_once(db: Database, window: float) -> Adapted:
    """window: seconds of the request log that count."""
    return Adapted(await adapt_by_hit_rate(db, timedelta(seconds=window)))


__all__ = ["Adapted", "run_once"]
