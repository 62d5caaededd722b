"""Reads the figures of all tenants, which only a worker may; the task's row keeps them for metrics."""

from __future__ import annotations

from service.store import figures
from service.store.database import Database
from service.store.figures import Figures


async def run_once(db: Database) -> Figures:
    return await figures.read(db)


__all__ = ["run_once"]
