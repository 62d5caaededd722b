"""Other eviction policies over a sequence of requests that all weigh the same: how many of them hit.

Sizes are entries. LRU; LFU within the cache, ties by recency; SIEVE (Y. Zhang et al., NSDI 2024); S3-FIFO (J. Yang et
al., SOSP 2023); and the offline optimum, which knows the future (L. Belady, 1966, with bypassing).
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Sequence

Trace = Sequence[int]
NEVER = 1 << 60


def lru(trace: Trace, size: int) -> int:
    cache: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for key in trace:
        if key in cache:
            hits += 1
            cache.move_to_end(key)
            continue
        if len(cache) >= size:
            cache.popitem(last=False)
        cache[key] = None
    return hits


def lfu(trace: Trace, size: int) -> int:
    standing: dict[int, tuple[int, int]] = {}
    order: list[tuple[int, int, int]] = []
    hits = 0
    for time, key in enumerate(trace):
        uses = standing[key][0] + 1 if key in standing else 1
        hits += uses > 1
        while uses == 1 and len(standing) >= size:
            least, last, other = heapq.heappop(order)
            if standing.get(other) == (least, last):
                del standing[other]
        standing[key] = (uses, time)
        heapq.heappush(order, (uses, time, key))
    return hits


def sieve(trace: Trace, size: int) -> int:
    queue: list[int | None] = []  # oldest first; a place that was left is None
    place: dict[int, int] = {}
    visited: set[int] = set()
    hand = hits = 0
    for key in trace:
        if key in place:
            hits += 1
            visited.add(key)
            continue
        while len(place) >= size:
            other = queue[hand]
            if other in visited:
                visited.discard(other)
            elif other is not None:
                queue[hand] = None
                del place[other]
            hand = (hand + 1) % len(queue)
        if len(queue) > 4 * size:
            hand = sum(other is not None for other in queue[:hand])
            queue = [other for other in queue if other is not None]
        place[key] = len(queue)
        queue.append(key)
    return hits


class S3Fifo:
    """A small queue of a tenth, a main one, and a memory of what the small one let go."""

    def __init__(self, size: int) -> None:
        self._size, self._small_size = size, max(1, size // 10)
        self._small: OrderedDict[int, None] = OrderedDict()
        self._main: OrderedDict[int, None] = OrderedDict()
        self._ghosts: OrderedDict[int, None] = OrderedDict()
        self._uses: dict[int, int] = {}

    def ask(self, key: int) -> bool:
        if key in self._uses:
            self._uses[key] = min(3, self._uses[key] + 1)
            return True
        while len(self._uses) >= self._size:
            self._evict()
        queue = self._main if key in self._ghosts else self._small
        self._ghosts.pop(key, None)
        queue[key] = None
        self._uses[key] = 0
        return False

    def _evict(self) -> None:
        if len(self._small) < self._small_size and self._main:
            self._evict_main()
            return
        key, _ = self._small.popitem(last=False)
        if self._uses[key] > 1:
            self._main[key] = None
            self._uses[key] = 0
            return
        del self._uses[key]
        self._ghosts[key] = None
        if len(self._ghosts) > self._size - self._small_size:
            self._ghosts.popitem(last=False)

    def _evict_main(self) -> None:
        key, _ = self._main.popitem(last=False)
        if self._uses[key] > 0:
            self._uses[key] -= 1
            self._main[key] = None
        else:
            del self._uses[key]


def s3_fifo(trace: Trace, size: int) -> int:
    cache = S3Fifo(size)
    return sum(cache.ask(key) for key in trace)


def optimum(trace: Trace, size: int) -> int:
    following, seen = [NEVER] * len(trace), {}
    for time in range(len(trace) - 1, -1, -1):
        following[time] = seen.get(trace[time], NEVER)
        seen[trace[time]] = time
    cache: dict[int, int] = {}
    order: list[tuple[int, int]] = []
    hits = 0
    for time, key in enumerate(trace):
        if key in cache:
            hits += 1
        elif len(cache) >= size:
            while cache.get(order[0][1]) != -order[0][0]:
                heapq.heappop(order)
            if -order[0][0] < following[time]:
                continue
            del cache[heapq.heappop(order)[1]]
        cache[key] = following[time]
        heapq.heappush(order, (-following[time], key))
    return hits


POLICIES: dict[str, Callable[[Trace, int], int]] = {"LRU": lru, "LFU": lfu, "SIEVE": sieve, "S3-FIFO": s3_fifo}

__all__ = ["POLICIES", "Trace", "optimum"]
