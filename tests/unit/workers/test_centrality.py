"""The measures on graphs whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workers.graph.centrality import SCALE, betweenness, markov, measure, pagerank, popularity
from workers.graph.model import Graph, make_graph


def graph(edges: dict[tuple[int, int], float], visits: dict[int, float], starts: dict[int, float]) -> Graph:
    logs = [(node, math.log2(count), _log(starts.get(node, 0.0))) for node, count in visits.items()]
    _, made = make_graph(logs, [(a, b, math.log2(weight)) for (a, b), weight in edges.items()])
    return made


def _log(count: float) -> float:
    return math.log2(count) if count else -math.inf


FUNNEL = graph(
    # two ways in, one bridge, two ways out; 9 is asked alone, and often
    {(0, 2): 10, (1, 2): 10, (2, 3): 10, (2, 4): 10},
    {0: 10, 1: 10, 2: 20, 3: 10, 4: 10, 9: 40},
    {0: 10, 1: 10, 9: 40},
)


def test_popularity_is_the_share_of_visits() -> None:
    assert popularity(FUNNEL).tolist() == pytest.approx([0.1, 0.1, 0.2, 0.1, 0.1, 0.4])


def test_only_ratios_of_weights_count() -> None:
    logs = [(1, 700.0, 700.0), (2, 699.0, -math.inf)]
    numbers, made = make_graph(logs, [(1, 2, 699.0), (2, 77, 699.0)])
    assert numbers == [1, 2]
    assert made.visits.tolist() == [1.0, 0.5]
    assert made.starts.tolist() == [1.0, 0.0]
    assert made.chances.tolist() == [0.5]


def test_a_session_that_goes_on_in_many_ways_has_one_chance_in_all() -> None:
    made = graph({(0, 1): 3, (0, 2): 1}, {0: 2, 1: 3, 2: 1}, {0: 2})
    assert made.chances.tolist() == pytest.approx([0.75, 0.25])


def test_the_bridge_has_all_paths() -> None:
    assert betweenness(FUNNEL).tolist() == [0, 0, 1, 0, 0, 0]


def test_a_likely_detour_is_shorter_than_an_unlikely_way() -> None:
    made = graph({(0, 2): 0.1, (0, 1): 9.9, (1, 2): 10}, {0: 10, 1: 10, 2: 10}, {0: 10})
    assert -SCALE * math.log(0.01) > -SCALE * math.log(0.99)
    assert betweenness(made).tolist() == [0, 1, 0]


def test_pagerank_is_the_visits_of_a_walk_that_restarts() -> None:
    rank = pagerank(FUNNEL)
    assert rank.sum() == pytest.approx(1)
    # By hand: with restart r to the starts (1/6, 1/6, 4/6) and damping 0.85 on each step.
    first = rank[0]
    assert rank[2] == pytest.approx(0.85 * 2 * first)
    assert rank[3] == pytest.approx(0.85 * rank[2] / 2)
    assert rank[5] == pytest.approx(4 * first)


def test_pagerank_finds_the_visits_of_a_planted_walk() -> None:
    chances = np.array([[0, 0.6, 0.2], [0.1, 0, 0.5], [0.3, 0.3, 0]])
    visits = np.linalg.solve(np.eye(3) - chances.T, np.array([1.0, 0, 0]))
    edges = {(a, b): chances[a, b] * visits[a] for a in range(3) for b in range(3) if a != b}
    made = graph(edges, dict(enumerate(visits.tolist())), {0: 1.0})
    assert np.argsort(pagerank(made)).tolist() == np.argsort(visits).tolist()


def test_markov_looks_ahead_of_the_sessions_under_way() -> None:
    at_two = np.array([0.0, 0, 5, 0, 0, 0])
    assert markov(FUNNEL, at_two, 0.0).tolist() == pytest.approx([0, 0, 0, 0.5, 0.5, 0])


def test_markov_counts_the_sessions_to_come_beside_them() -> None:
    assert markov(FUNNEL, np.zeros(6), 9.0).tolist() == pytest.approx(popularity(FUNNEL).tolist())
    both = markov(FUNNEL, np.array([0.0, 0, 5, 0, 0, 0]), 5.0)
    assert both[3] == pytest.approx((0.1 * 5 + 2.5) / 10)


def test_a_graph_without_nodes_or_without_edges_has_its_measures() -> None:
    _, empty = make_graph([], [])
    assert [values.tolist() for values in measure(empty, np.zeros(0), 0.0).values()] == [[]] * 4
    lonely = graph({}, {3: 2.0}, {})
    found = {name: values.tolist() for name, values in measure(lonely, np.zeros(1), 2.0).items()}
    assert found == {"popularity": [1], "pagerank": [1], "betweenness": [0], "markov": [1]}
