"""What each scorer says at each tick of who will be asked for, from the past of a trace alone.

No scorer sees what a cache does, so that all replays share these.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from benchmarks.prefetching.traces import GAP, Request, Trace
from workers.graph.centrality import OF_THE_GRAPH, STEPS, markov, popularity
from workers.graph.model import Graph

TICK = 60.0  # seconds
SCORED_EVERY = 10  # ticks
HALF_LIFE = 86_400.0
SUPPORT = 2

Shares = NDArray[np.float32]


class Past:
    """Decayed counts of what was asked and of what followed, up to now."""

    def __init__(self, trace: Trace) -> None:
        self.nodes = trace.nodes
        self.visits, self.starts = np.zeros(trace.nodes), np.zeros(trace.nodes)
        self.edges: dict[tuple[int, int], list[float]] = {}
        self.pairs: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
        self.last: dict[str, list[tuple[float, int]]] = {}

    def add(self, request: Request) -> None:
        weight = 2 ** (request.at / HALF_LIFE)
        before = [turn for turn in self.last.get(request.session, []) if request.at - turn[0] <= GAP]
        self.visits[request.node] += weight
        if not before:
            self.starts[request.node] += weight
        elif before[-1][1] != request.node:
            edge = self.edges.setdefault((before[-1][1], request.node), [0.0, 0])
            edge[0] += weight
            edge[1] += 1
        if len(before) == 2:
            after = self.pairs[before[0][1], before[1][1]]
            after[request.node] = after.get(request.node, 0.0) + weight
        self.last[request.session] = [*before, (request.at, request.node)][-2:]

    def graph(self) -> Graph:
        seen = [(ends, weight) for ends, (weight, times) in self.edges.items() if times >= SUPPORT]
        ends = np.array([pair for pair, _ in seen], dtype=np.int64).reshape(-1, 2)
        weights = np.array([weight for _, weight in seen], dtype=np.float64)
        return Graph(self.visits.copy(), self.starts.copy(), ends[:, 0], ends[:, 1], weights)

    def active(self, now: float) -> list[list[int]]:
        """The last one or two requests of each session that is under way."""
        self.last = {name: turns for name, turns in self.last.items() if now - turns[-1][0] <= GAP}
        return [[node for _, node in turns] for turns in self.last.values()]


def foresee(trace: Trace) -> tuple[dict[str, Shares], NDArray[np.float64]]:
    """For each scorer its shares, shape (ticks, nodes), and the rate of all requests at each tick, per second."""
    ticks = int(trace.requests[-1].at // TICK) + 2
    past, queue = Past(trace), iter(trace.requests)
    shares: dict[str, Shares] = {
        name: np.zeros((ticks, trace.nodes), dtype=np.float32) for name in (*OF_THE_GRAPH, "markov", "ppm-2", "random")
    }
    rates, draw = np.zeros(ticks), np.random.default_rng(3)
    following = next(queue, None)
    graph = past.graph()
    for tick in range(ticks):
        now = tick * TICK
        while following is not None and following.at < now:
            past.add(following)
            following = next(queue, None)
        if tick % SCORED_EVERY == 0:
            graph = past.graph()
        for name, of in OF_THE_GRAPH.items():
            shares[name][tick] = shares[name][tick - 1] if tick % SCORED_EVERY else of(graph)
        rates[tick] = _rate(past.visits.sum(), now)
        _look_ahead(past, graph, tick, rates[tick] * GAP, shares)
        shares["random"][tick] = draw.random(trace.nodes) * (past.visits > 0)
    return shares, rates


def _look_ahead(past: Past, graph: Graph, tick: int, coming: float, shares: dict[str, Shares]) -> None:
    """From where the sessions under way stand: one request of memory, and two where such a pair was seen."""
    last, second, rest = np.zeros(past.nodes), np.zeros(past.nodes), np.zeros(past.nodes)
    for turns in past.active(tick * TICK):
        last[turns[-1]] += 1
        after = past.pairs.get((turns[0], turns[1]), {}) if len(turns) == 2 else {}
        total = sum(after.values())
        for node, weight in after.items():
            second[node] += weight / total
        rest[turns[-1]] += not after
    shares["markov"][tick] = markov(graph, last, coming)
    mass, expected = second + graph.step(rest), coming * popularity(graph)
    for _ in range(STEPS):
        expected = expected + mass
        mass = graph.step(mass)
    shares["ppm-2"][tick] = expected / (expected.sum() or 1)


def _rate(visits: float, now: float) -> float:
    """Requests a second, from decayed counts that began at 0."""
    decayed = visits / 2 ** (now / HALF_LIFE)
    window = HALF_LIFE / np.log(2) * (1 - 2 ** (-max(now, 60.0) / HALF_LIFE))
    return float(decayed / window)


__all__ = ["TICK", "Shares", "foresee"]
