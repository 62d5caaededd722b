"""A share over the last so many seconds."""

from __future__ import annotations

from collections import deque
from math import nan

STEPS = 30


class SlidingShare:
    """How many of the events of the last `window` seconds were of one kind. Forgets in steps of a thirtieth of it."""

    def __init__(self, window: float) -> None:
        self._window, self._step = window, window / STEPS
        self._counts: deque[list[float]] = deque()  # time of the first event of a step, all events, those of the kind

    def add(self, now: float, *, part: bool) -> None:
        """An event at a time of the monotonic clock."""
        if not self._counts or now - self._counts[-1][0] >= self._step:
            self._forget(now)
            self._counts.append([now, 0, 0])
        self._counts[-1][1] += 1
        self._counts[-1][2] += part

    def share(self, now: float) -> float:
        """NaN where nothing happened."""
        self._forget(now)
        total = sum(step[1] for step in self._counts)
        return sum(step[2] for step in self._counts) / total if total else nan

    def _forget(self, now: float) -> None:
        while self._counts and now - self._counts[0][0] > self._window:
            self._counts.popleft()


__all__ = ["SlidingShare"]
