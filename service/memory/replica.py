"""L1: what one service process remembers of the database, and until when it may trust it.

Nothing here is served unless a lease is live. What is read from the database while an invalidation comes in is not
remembered: `mark` before the read, and `remember` refuses what is older than the last `forget`.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from service.memory.lru import Lru

V = TypeVar("V")
Variants = dict[Hashable, tuple[Any, float, int]]  # by filter: value, time of reading, bytes

FEW = 10_000
OVERHEAD = 512
NAMED_BYTES = 64 * 2**20  # of caches with what they have learned


@dataclass(frozen=True, slots=True)
class Kept(Generic[V]):
    """A remembered value and how many seconds ago it was read."""

    value: V
    seconds: float


class ReplicaMemory:
    """Answers by request, caches by name, tenants by key; all under one lease."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._answers: Lru[tuple[int, bytes], Variants] = Lru(max_entries, max_bytes)
        self._names: Lru[Hashable, tuple[int | None, Any]] = Lru(FEW, NAMED_BYTES)
        self._until = 0.0
        self._mark = 0

    @property
    def live(self) -> bool:
        """Whether what is remembered may be served now."""
        return time.monotonic() < self._until

    def trust(self, until: float) -> None:
        """A lease is held until this time of the monotonic clock."""
        self._until = until

    @property
    def mark(self) -> int:
        """Where forgetting stands; take it before a read whose result is to be remembered."""
        return self._mark

    def answer(self, cache_id: int, exact_key: bytes, kind: Hashable) -> Kept[Any] | None:
        """A remembered answer to this request; `kind` tells apart what differs in its filters."""
        if not self.live:
            return None
        variants = self._answers.get((cache_id, exact_key))
        if variants is None or kind not in variants:
            return None
        value, read_at, _ = variants[kind]
        return Kept(value, time.monotonic() - read_at)

    def remember_answer(
        self, cache_id: int, exact_key: bytes, kind: Hashable, value: object, *, size: int, mark: int
    ) -> None:
        if mark != self._mark:
            return
        variants = dict(self._answers.get((cache_id, exact_key)) or {})
        variants[kind] = (value, time.monotonic(), size + OVERHEAD)
        self._answers.put((cache_id, exact_key), variants, sum(size for _, _, size in variants.values()))

    def named(self, name: Hashable) -> Any | None:
        """A remembered cache or tenant."""
        found = self._names.get(name) if self.live else None
        return found[1] if found else None

    def remember_named(self, name: Hashable, cache_id: int | None, value: object, *, size: int = 0, mark: int) -> None:
        """`cache_id` None: forgotten whenever everything is. size: of the value, in bytes."""
        if mark == self._mark:
            self._names.put(name, (cache_id, value), size + OVERHEAD)

    def forget(self, cache_id: int | None, exact_key: bytes | None) -> None:
        """Forget a request of a cache, a whole cache (exact_key None), or everything (cache_id None)."""
        self._mark += 1
        if cache_id is None:
            self._answers.clear()
            self._names.clear()
        elif exact_key is None:
            self._answers.drop(lambda key, _: key[0] == cache_id)
            self._names.drop(lambda _, named: named[0] == cache_id)
        else:
            self._answers.pop((cache_id, exact_key))

    @property
    def entries(self) -> int:
        return len(self._answers)

    @property
    def bytes(self) -> int:
        return self._answers.bytes


__all__ = ["Kept", "ReplicaMemory"]
