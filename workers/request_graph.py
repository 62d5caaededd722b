"""Keeps the request graph: what was asked is added, what is beyond its bounds goes, and its nodes are scored anew."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from service.store import graph as store
from service.store.database import Database
from service.store.graph import GraphRows, Grown
from workers.graph.centrality import measure
from workers.graph.model import make_graph

BATCH = 2_000
KEEP = timedelta(days=30)
SUPPORT = 2  # times that an edge was seen before it means something
GRAPHS = 20  # scored in one run


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows of the log that were added, rows of the graph that went, and graphs that were scored."""

    added: int
    trimmed: int
    scored: int


async def run_once(db: Database, *, nodes: int, edges: int) -> Kept:
    """Bring the graphs up to date. nodes, edges: the most that the graph of one cache keeps."""
    added = trimmed = 0
    while count := await store.fold(db, limit=BATCH):
        added += count
    while count := await store.trim(db, nodes=nodes, edges=edges, limit=BATCH, keep=KEEP):
        trimmed += count
    grown = await store.to_score(db, limit=GRAPHS)
    for graph in grown:
        await _score(db, graph)
    return Kept(added, trimmed, len(grown))


async def _score(db: Database, grown: Grown) -> None:
    rows = await store.read(db, grown.cache_id, support=SUPPORT)
    numbers, scores = await asyncio.to_thread(_measure, rows)
    await store.save(db, grown, numbers, scores)


def _measure(rows: GraphRows) -> tuple[list[int], dict[str, list[float]]]:
    numbers, graph = make_graph(rows.nodes, rows.edges)
    active = np.array(rows.sessions, dtype=np.float64)
    return numbers, {name: scores.tolist() for name, scores in measure(graph, active, rows.coming).items()}


__all__ = ["Kept", "run_once"]
