"""What was embedded lately: text to vector, bounded by count, the least recently used forgotten first."""

from __future__ import annotations

from collections import OrderedDict

from service.embed.vectors import Vector, text_key


class TextMemory:
    """Vectors of at most `capacity` texts, found by the text's SHA-256 so that long texts cost no memory.

    The vectors are read-only, since every caller gets the same array.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()

    def __len__(self) -> int:
        return len(self._vectors)

    def get(self, text: str) -> Vector | None:
        key = text_key(text)
        vector = self._vectors.get(key)
        if vector is not None:
            self._vectors.move_to_end(key)
        return vector

    def put(self, text: str, vector: Vector) -> None:
        vector.flags.writeable = False
        self._vectors[text_key(text)] = vector
        if len(self._vectors) > self._capacity:
            self._vectors.popitem(last=False)


__all__ = ["TextMemory"]
