"""A bounded map: least recently used goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Keeps at most `max_entries` values of together at most `max_bytes`; a larger value is not kept at all."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: K) -> V | None:
        item = self._items.get(key)
        if item is None:
            return None
        self._items.move_to_end(key)
        return item[0]

    def put(self, key: K, value: V, size: int) -> None:
        """`size` in bytes."""
        self.pop(key)
        if size > self._max_bytes or self._max_entries == 0:
            return
        self._items[key] = (value, size)
        self.bytes += size
        while len(self._items) > self._max_entries or self.bytes > self._max_bytes:
            _, (_, freed) = self._items.popitem(last=False)
            self.bytes -= freed

    def pop(self, key: K) -> None:
        item = self._items.pop(key, None)
        if item is not None:
            self.bytes -= item[1]

    def drop(self, unwanted: Callable[[K, V], bool]) -> None:
        """Remove every value that is unwanted."""
        for key in [key for key, (value, _) in self._items.items() if unwanted(key, value)]:
            self.pop(key)

    def clear(self) -> None:
        self._items.clear()
        self.bytes = 0


__all__ = ["Lru"]
