"""How long a request waits for the cache before it goes to the model without it."""

from __future__ import annotations

from collections import deque

WINDOW = 128
FEW = 8
AT_FIRST = 1.0  # seconds, as RFC 6298 begins where nothing was measured: the first lookups of a process are cold


class Patience:
    """The longest of the last lookups, and `extra` seconds more.

    Only lookups that ended well count, also those that ended too late: so a database that became slower is waited for
    in the end, and one that does not answer is not.
    """

    def __init__(self, extra: float, longest: float) -> None:
        self._extra, self._longest = extra, longest
        self._seen: deque[float] = deque(maxlen=WINDOW)

    def took(self, seconds: float) -> None:
        """A lookup that asked all that could be asked ended after this time."""
        self._seen.append(seconds)

    @property
    def seconds(self) -> float:
        usual = max(self._seen, default=AT_FIRST)
        if len(self._seen) < FEW:
            usual = max(usual, AT_FIRST)
        return min(usual, self._longest) + self._extra


__all__ = ["Patience"]
