"""How fast uses should fade: the eviction of a cache over again on the requests that it had, at other half-lives."""

from __future__ import annotations

import heapq
import math
import random
from collections import OrderedDict
from collections.abc import Hashable, Sequence

HALF_LIVES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
REMEMBERED = (
    4  # evicted requests that are remembered, for each entry that fits, as sql/functions/evict_entries.sql does
)
LONGEST = 20_000  # requests that are tried; of more a sample of the keys is (SHARDS, C. Waldspurger et al., FAST 2015)
TURNOVERS = 2  # requests for each entry that fits, below which nothing is learned
BETTER = 1.01


class DecayCache:
    """The policy lfu-decay-cost over requests that all cost and weigh the same."""

    def __init__(self, room: int, half_life: float) -> None:
        self._room, self._half_life = room, half_life
        self._clock = 0.0
        self._scores: dict[Hashable, float] = {}
        self._order: list[tuple[float, int, Hashable]] = []
        self._evicted: OrderedDict[Hashable, float] = OrderedDict()
        self._stored = 0

    def ask(self, key: Hashable) -> bool:
        """Whether the request hits; it is stored if not."""
        score = self._scores.get(key)
        if score is None:
            self._store(key)
            return False
        self._scores[key] = _add(score, self._clock)
        return True

    def _store(self, key: Hashable) -> None:
        self._stored += 1
        self._clock += 1 / (self._half_life * self._room)
        if len(self._scores) >= self._room:
            self._evict()
        earlier = self._evicted.pop(key, None)
        score = self._clock if earlier is None else _add(earlier, self._clock)
        self._scores[key] = score
        heapq.heappush(self._order, (score, self._stored, key))

    def _evict(self) -> None:
        while True:
            rank, place, key = heapq.heappop(self._order)
            score = self._scores[key]
            if score == rank:
                break
            heapq.heappush(self._order, (score, place, key))
        self._evicted[key] = self._scores.pop(key)
        if len(self._evicted) > REMEMBERED * self._room:
            self._evicted.popitem(last=False)


def best_half_life(requests: Sequence[Hashable], room: int, current: float) -> float:
    """The half-life, in turnovers of the cache, that would have hit most often; the current one where none is better.

    requests: what was asked, oldest first. room: how many entries fit.
    """
    if len(requests) < TURNOVERS * room:
        return current
    share = min(1.0, LONGEST / len(requests))
    sample = _sample(requests, share)
    fits = max(1, round(room * share))
    hits = {half_life: _hits(sample, fits, half_life) for half_life in {*HALF_LIVES, current}}
    best = max(hits, key=lambda half_life: (hits[half_life], half_life))
    return best if hits[best] > BETTER * hits[current] else current


def _hits(requests: Sequence[Hashable], room: int, half_life: float) -> int:
    """After the first third, in which the cache fills."""
    cache = DecayCache(room, half_life)
    hits = [cache.ask(key) for key in requests]
    return sum(hits[len(hits) // 3 :])


def _sample(requests: Sequence[Hashable], share: float) -> Sequence[Hashable]:
    """All requests of this share of the keys."""
    if share == 1.0:
        return requests
    draw = random.Random(0)  # noqa: S311 - a sample, no secret
    kept = {key: draw.random() < share for key in dict.fromkeys(requests)}
    return [key for key in requests if kept[key]]


def _add(a: float, b: float) -> float:
    """As sql/functions/add_decayed.sql."""
    return max(a, b) + math.log2(1 + 2.0 ** -abs(a - b))


__all__ = ["DecayCache", "best_half_life"]
