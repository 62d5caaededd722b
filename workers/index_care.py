"""Gives large scopes their approximate index, and a new one when their rows have doubled."""

from __future__ import annotations

from dataclasses import dataclass

from service.store.database import Database
from service.store.index_care import build, clear_invalid, large_scopes


@dataclass(frozen=True, slots=True)
class Cared:
    """Names of what was built, and of what a broken build had left and was dropped."""

    built: list[str]
    cleared: list[str]


async def run_once(db: Database, exact_scan_limit: int) -> Cared:
    """Build what is missing, one index after the other."""
    cleared = await clear_invalid(db)
    scopes = await large_scopes(db, exact_scan_limit)
    for scope in scopes:
        await build(db, scope)
    return Cared([scope.name for scope in scopes], cleared)


__all__ = ["Cared", "run_once"]
