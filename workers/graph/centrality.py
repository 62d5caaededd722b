"""How central each node of a request graph is. Every measure is a share: it adds up to 1 over the nodes, or is 0."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np

from workers.graph.model import Graph, Values

DAMPING = 0.85
ROUNDS, NEAR_ENOUGH = 200, 1e-10
STEPS = 3  # requests of a session that are looked ahead
SCALE = 1_000  # distances are integers, since sums of floats tell equal paths apart (NetworkX)
PIVOTS = 64
WORK = 1_000_000  # edges looked at in one estimate of betweenness: about two seconds
SEED = 7


def popularity(graph: Graph) -> Values:
    """Share of the decayed visits."""
    return _share(graph.visits)


def pagerank(graph: Graph) -> Values:
    """Share of the visits of an endless walk that begins anew, where sessions start, at each session's end.

    Brin and Page 1998, with the sessions' starts as the personal vector: expected visits under a first-order model.
    """
    if not graph.visits.size:
        return graph.visits
    restart = _share(graph.starts if graph.starts.any() else graph.visits)
    rank = restart
    for _ in range(ROUNDS):
        moved = DAMPING * graph.step(rank)
        following: Values = moved + (1 - moved.sum()) * restart
        if np.abs(following - rank).sum() < NEAR_ENOUGH:
            return following
        rank = following
    return rank


def betweenness(graph: Graph) -> Values:
    """Share of the likeliest paths that lead through a node: Brandes 2001, from a sample of sources.

    An edge is the longer, the less likely it is: -log of its chance. Fewer sources are taken from large graphs.
    """
    lengths = 1 + np.rint(-SCALE * np.log(graph.chances)).astype(np.int64)
    web: nx.DiGraph[int] = nx.DiGraph()
    web.add_nodes_from(range(graph.visits.size))
    web.add_weighted_edges_from(zip(graph.source.tolist(), graph.target.tolist(), lengths.tolist(), strict=True))
    pivots = min(graph.visits.size, PIVOTS, max(1, WORK // max(1, graph.weight.size)))
    found = nx.betweenness_centrality(web, k=pivots, weight="weight", normalized=False, seed=SEED) if pivots else {}
    return _share(np.array([found[place] for place in range(graph.visits.size)], dtype=np.float64))


def markov(graph: Graph, active: Values, coming: float) -> Values:
    """Share of the requests expected soon: those that follow in the sessions under way, and all others as ever.

    active: how many sessions are at each node now. coming: how many requests are to be expected in a session's time.
    """
    mass, expected = active, coming * popularity(graph)
    for _ in range(STEPS):
        mass = graph.step(mass)
        expected = expected + mass
    return _share(expected)


def _share(values: Values) -> Values:
    total = values.sum()
    shares: Values = values / total if total > 0 else np.zeros_like(values)
    return shares


OF_THE_GRAPH: dict[str, Callable[[Graph], Values]] = {
    "popularity": popularity,
    "pagerank": pagerank,
    "betweenness": betweenness,
}
"""The measures that only the graph decides."""


def measure(graph: Graph, active: Values, coming: float) -> dict[str, Values]:
    """All measures by name; arguments as of `markov`."""
    return {name: of(graph) for name, of in OF_THE_GRAPH.items()} | {"markov": markov(graph, active, coming)}


__all__ = ["OF_THE_GRAPH", "STEPS", "betweenness", "markov", "measure", "pagerank", "popularity"]
