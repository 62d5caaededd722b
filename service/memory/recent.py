"""What was right a short while ago, for when nobody can be asked: never for what may be served from the cache."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Generic, TypeVar

from service.memory.lru import Lru

V = TypeVar("V")

MOST = 10_000


class Recent(Generic[V]):
    """Values with the time when they were last confirmed, together of at most `max_bytes` as their sizes say."""

    def __init__(self, max_bytes: int = MOST) -> None:
        self._values: Lru[Hashable, tuple[V, float]] = Lru(MOST, max_bytes)

    def confirm(self, name: Hashable, value: V, size: int = 1) -> None:
        self._values.put(name, (value, time.monotonic()), size)

    def deny(self, name: Hashable) -> None:
        self._values.pop(name)

    def within(self, name: Hashable, seconds: float) -> V | None:
        """The value, if it was confirmed within so many seconds."""
        found = self._values.get(name)
        return found[0] if found and time.monotonic() - found[1] <= seconds else None


__all__ = ["Recent"]
