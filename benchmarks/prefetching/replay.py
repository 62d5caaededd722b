"""A cache whose answers end, replayed with and without somebody who asks ahead."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.prefetching.foresight import TICK, Shares
from benchmarks.prefetching.traces import Trace

SOON = 2 * TICK  # before its end an answer may be asked for anew
BURST = 3.0  # calls that may be saved up


@dataclass
class Outcome:
    """What came of the requests that count: by session, hits and requests; and of the calls ahead."""

    hits: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    misses: int = 0
    ahead: int = 0
    used: int = 0
    tokens_ahead: int = 0
    tokens_used: int = 0
    leads: list[float] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """The upstream budget that was used: demand and ahead together."""
        return self.misses + self.ahead

    @property
    def hit_rate(self) -> float:
        return sum(self.hits.values()) / max(1, sum(self.asked.values()))


class Cache:
    """Answers by node: until when each lives (-inf: never stored), and which were asked ahead and not yet used."""

    def __init__(self, trace: Trace, ttl: float, counted: tuple[float, float]) -> None:
        self.ttl, self.counted = ttl, counted
        self.ends = np.full(trace.nodes, -np.inf)
        self.tokens = np.zeros(trace.nodes, dtype=np.int64)
        self.unused: dict[int, float] = {}
        self.outcome = Outcome()

    def counts(self, at: float) -> bool:
        return self.counted[0] <= at < self.counted[1]

    def ask_ahead(self, node: int, now: float) -> None:
        self.ends[node] = now + self.ttl
        self.unused.pop(node, None)
        if self.counts(now):
            self.outcome.ahead += 1
            self.outcome.tokens_ahead += int(self.tokens[node])
            self.unused[node] = now

    def request(self, at: float, node: int, session: str, tokens: int) -> bool:
        """Whether it is a hit."""
        hit = bool(self.ends[node] > at)
        if hit and node in self.unused:
            self.outcome.used += 1
            self.outcome.tokens_used += int(self.tokens[node])
            self.outcome.leads.append(at - self.unused.pop(node))
        if not hit:
            self.ends[node], self.tokens[node] = at + self.ttl, tokens
            self.unused.pop(node, None)
        if self.counts(at):
            out = self.outcome
            out.asked[session] = out.asked.get(session, 0) + 1
            out.hits[session] = out.hits.get(session, 0) + hit
            out.misses += not hit
        return hit


def replay(
    trace: Trace,
    ttl: float,
    counted: tuple[float, float],
    *,
    shares: Shares | None,
    rates: NDArray[np.float64],
    calls: float,
) -> Outcome:
    """Ask ahead up to `calls` times a second on average, the best by these shares first; None: whoever the future says.

    counted: the seconds from and to which outcomes count. A request's chance is as in sql/functions/claim_prefetch.sql.
    """
    cache, saved, tick = Cache(trace, ttl, counted), 0.0, 0
    coming = _coming(trace) if shares is None else None
    for request in trace.requests:
        while tick * TICK <= request.at:
            saved = min(saved + calls * TICK, max(BURST, calls * TICK))
            now = tick * TICK
            while saved >= 1:
                worth = _foreseen(cache, now, coming) if coming else _likely(cache, now, shares, rates, tick)
                node = int(np.argmax(worth))
                if worth[node] <= 0:
                    break
                cache.ask_ahead(node, now)
                saved -= 1
            tick += 1
        cache.request(request.at, request.node, request.session, request.tokens)
    return cache.outcome


def replay_refresh_on_hit(trace: Trace, ttl: float, counted: tuple[float, float], *, part: float) -> Outcome:
    """A hit in the last `part` of an answer's life asks for it anew, which extends it: no graph is needed."""
    cache = Cache(trace, ttl, counted)
    for request in trace.requests:
        left = cache.ends[request.node] - request.at
        if cache.request(request.at, request.node, request.session, request.tokens) and left < part * ttl:
            cache.ask_ahead(request.node, request.at)
    return cache.outcome


def _likely(
    cache: Cache, now: float, shares: Shares | None, rates: NDArray[np.float64], tick: int
) -> NDArray[np.float64]:
    assert shares is not None
    chance = 1 - np.exp(-rates[tick] * shares[tick].astype(np.float64) * cache.ttl)
    left = np.maximum(cache.ends - now, 0)
    wanted = np.where(left < SOON, chance * (1 - left / cache.ttl), 0)
    return np.where(np.isfinite(cache.ends), wanted, 0)


def _coming(trace: Trace) -> list[NDArray[np.float64]]:
    times: list[list[float]] = [[] for _ in range(trace.nodes)]
    for request in trace.requests:
        times[request.node].append(request.at)
    return [np.array(each) for each in times]


def _foreseen(cache: Cache, now: float, coming: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Worth asking for is what will be wanted after the old answer's end and before the new one's; soonest first."""
    worth = np.zeros(len(coming))
    for node in np.flatnonzero(np.isfinite(cache.ends) & (cache.ends - now < SOON)):
        times = coming[node]
        place = np.searchsorted(times, max(now, cache.ends[node]))
        if place < len(times) and times[place] < now + cache.ttl:
            worth[node] = 1 / (1 + times[place] - now)
    return worth


__all__ = ["Outcome", "replay", "replay_refresh_on_hit"]
