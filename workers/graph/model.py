"""The request graph as arrays, for the mathematics over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes by their place from 0 on, and the edges between them.

    visits, starts: decayed counts of each node, shape (nodes,). source, target: places of the ends of each edge, and
    weight its decayed count, shape (edges,). Only ratios of counts mean something.
    """

    visits: Values
    starts: Values
    source: Places
    target: Places
    weight: Values

    @property
    def chances(self) -> Values:
        """P(target is next | source is asked) of each edge. What is missing to 1 at a node is the session's end."""
        out = np.bincount(self.source, self.weight, self.visits.size)
        chances: Values = self.weight / np.maximum(out, self.visits)[self.source]
        return chances

    def step(self, mass: Values) -> Values:
        """Where a distribution over the nodes is one request later; what ended on the way is lost."""
        return np.bincount(self.target, mass[self.source] * self.chances, mass.size).astype(np.float64)


def make_graph(
    nodes: Sequence[tuple[int, float, float]], edges: Sequence[tuple[int, int, float]]
) -> tuple[list[int], Graph]:
    """The numbers of the nodes, by place, and the graph.

    nodes: number, log2 of visits, log2 of starts. edges: numbers of both ends, log2 of their count; those whose ends
    are not among the nodes are left out.
    """
    numbers = [number for number, _, _ in nodes]
    places = {number: place for place, number in enumerate(numbers)}
    inside = [(places[a], places[b], weight) for a, b, weight in edges if a in places and b in places]
    latest = max((visits for _, visits, _ in nodes), default=0.0)
    ends = np.array([edge[:2] for edge in inside], dtype=np.int64).reshape(-1, 2)
    return numbers, Graph(
        visits=_linear([node[1] for node in nodes], latest),
        starts=_linear([node[2] for node in nodes], latest),
        source=ends[:, 0],
        target=ends[:, 1],
        weight=_linear([edge[2] for edge in inside], latest),
    )


def _linear(logs: Sequence[float], latest: float) -> Values:
    return np.exp2(np.array(logs, dtype=np.float64) - latest)


__all__ = ["Graph", "Places", "Values", "make_graph"]
