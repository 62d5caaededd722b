"""A small request graph, written as a worker would."""

from __future__ import annotations

import psycopg

NODE = """
insert into semcache.node (tenant_id, cache_id, request_key, exact_key, visits, seen)
select e.tenant_id, e.cache_id, sha256(e.prompt::bytea), e.exact_key, semcache.decay_clock(now()) + 2, 4
from semcache.entry e join semcache.cache c using (cache_id) where c.name = %(cache)s and e.prompt = %(prompt)s
returning node_id
"""
EDGE = """
insert into semcache.transition (from_node, to_node, tenant_id, cache_id, weight, seen, last_at)
select %(from)s, %(to)s, tenant_id, cache_id, semcache.decay_clock(now()) + 1, 2, now()
from semcache.node where node_id = %(from)s
"""
SCORE = """
insert into semcache.centrality (node_id, tenant_id, cache_id, popularity, pagerank, betweenness, markov)
select node_id, tenant_id, cache_id, 0.5, %(pagerank)s, %(betweenness)s, 0 from semcache.node where node_id = %(node)s
"""


def lead(url: str, cache: str, first: str, second: str) -> tuple[int, int]:
    """Two stored prompts of a cache become nodes. The second follows every other time; it is central by PageRank, the
    first by betweenness."""
    with psycopg.connect(url, autocommit=True) as connection:
        start, end = (_node(connection, cache, prompt) for prompt in (first, second))
        connection.execute(EDGE, {"from": start, "to": end})
        connection.execute(SCORE, {"node": start, "pagerank": 0, "betweenness": 1})
        connection.execute(SCORE, {"node": end, "pagerank": 0.75, "betweenness": 0})
    return start, end


def _node(connection: psycopg.Connection[tuple[int]], cache: str, prompt: str) -> int:
    row = connection.execute(NODE, {"cache": cache, "prompt": prompt}).fetchone()
    assert row is not None
    return row[0]


__all__ = ["lead"]
