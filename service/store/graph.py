"""The request graph: the log folded into it, and its centralities. `db` acts as the worker, but for `central`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.store.database import Database, Row
from service.store.queries import query
from service.store.rows import CacheId, CacheRow

GAP = timedelta(minutes=30)  # between two requests of which one leads to the other
MEASURES = ("popularity", "pagerank", "betweenness", "markov")


@dataclass(frozen=True, slots=True)
class Grown:
    """A cache whose graph was added to at this time, and not scored since."""

    cache_id: CacheId
    grown_at: datetime


@dataclass(frozen=True, slots=True)
class GraphRows:
    """A graph. nodes: number, log2 of visits, log2 of starts; sessions: how many are at each node now; edges: the
    numbers of both ends and log2 of their count; coming: how many requests are to be expected within GAP."""

    nodes: list[tuple[int, float, float]]
    sessions: list[int]
    edges: list[tuple[int, int, float]]
    coming: float


async def fold(db: Database, *, limit: int) -> int:
    """Add the next rows of the log; returns how many numbers of the log that went on, 0 at its end."""
    async with db.connection(bulk=True) as connection:
        head = (await connection.one("select semcache.log_head() as head"))["head"]
        row = await connection.one("select semcache.fold_requests(%s, %s, %s) as read", (head, limit, GAP))
    return int(row["read"])


async def trim(db: Database, *, nodes: int, edges: int, limit: int, keep: timedelta) -> int:
    """Remove a batch of what is beyond the bounds of each cache's graph; returns how many rows went."""
    async with db.connection(bulk=True) as connection:
        row = await connection.one("select semcache.trim_graph(%s, %s, %s, %s) as removed", (nodes, edges, limit, keep))
    return int(row["removed"])


async def to_score(db: Database, *, limit: int) -> list[Grown]:
    """Caches whose graph has grown since it was scored, those that wait longest first."""
    async with db.connection() as connection:
        cursor = await connection.execute(query("graphs_to_score"), {"limit": limit})
        return [Grown(CacheId(row["cache_id"]), row["grown_at"]) for row in await cursor.fetchall()]


async def read(db: Database, cache_id: CacheId, *, support: int) -> GraphRows:
    """The graph of a cache with the edges that were seen at least `support` times."""
    values = {"cache_id": cache_id, "gap": GAP, "support": support}
    async with db.connection(bulk=True) as connection:
        nodes = await (await connection.execute(query("graph_nodes"), values)).fetchall()
        edges = await (await connection.execute(query("graph_edges"), values)).fetchall()
        rate = await connection.one("select coalesce(semcache.requests_a_second(%s), 0) as rate", (cache_id,))
    return GraphRows(
        [(row["node_id"], row["visits"], row["starts"]) for row in nodes],
        [row["sessions"] for row in nodes],
        [(row["from_node"], row["to_node"], row["weight"]) for row in edges],
        rate["rate"] * GAP.total_seconds(),
    )


async def save(db: Database, grown: Grown, nodes: Sequence[int], scores: Mapping[str, Sequence[float]]) -> None:
    """Write the centralities of these nodes; `scores` holds a list for each of MEASURES."""
    values = [list(scores[name]) for name in MEASURES]
    async with db.connection(bulk=True) as connection:
        await connection.execute(
            "select semcache.save_centralities(%s, %s, %s, %s::real[], %s::real[], %s::real[], %s::real[])",
            (grown.cache_id, grown.grown_at, list(nodes), *values),
        )


async def central(db: Database, cache: CacheRow, *, measure: str, limit: int) -> tuple[list[Row], list[Row]]:
    """A tenant's most central nodes by one of MEASURES and the edges between them: rows of `central_nodes` and
    `edges_between`."""
    values = {"tenant_id": cache.tenant_id, "cache_id": cache.cache_id, "measure": measure, "limit": limit}
    async with db.tenant(cache.tenant_id) as connection:
        nodes = await (await connection.execute(query("central_nodes"), values)).fetchall()
        among = values | {"nodes": [row["node_id"] for row in nodes]}
        edges = await (await connection.execute(query("edges_between"), among)).fetchall()
    return nodes, edges


__all__ = ["GAP", "MEASURES", "GraphRows", "Grown", "central", "fold", "read", "save", "to_score", "trim"]
