-- Write the centralities of a cache's nodes; only rows that change are touched.
-- Caller: the worker's task request_graph. p_grown_at: when the graph was last added to, as it was when it was read.
-- Locks: the rows, in the order of nodes. Bound: the nodes given. Nodes that are gone are skipped.

create or replace function semcache.save_centralities(
    p_cache_id bigint,
    p_grown_at timestamptz,
    p_nodes bigint[],
    p_popularity real[],
    p_pagerank real[],
    p_betweenness real[],
    p_markov real[]
)
returns void
language plpgsql
set search_path from current
as $$
begin
    insert into centrality (node_id, tenant_id, cache_id, popularity, pagerank, betweenness, markov)
    select n.node_id, n.tenant_id, n.cache_id, v.popularity, v.pagerank, v.betweenness, v.markov
    from unnest(p_nodes, p_popularity, p_pagerank, p_betweenness, p_markov)
        as v (node_id, popularity, pagerank, betweenness, markov)
    join node n using (node_id)
    where n.cache_id = p_cache_id
    order by n.node_id
    for key share of n
    on conflict (node_id) do update
    set popularity = excluded.popularity,
        pagerank = excluded.pagerank,
        betweenness = excluded.betweenness,
        markov = excluded.markov
    where (centrality.popularity, centrality.pagerank, centrality.betweenness, centrality.markov)
        is distinct from (excluded.popularity, excluded.pagerank, excluded.betweenness, excluded.markov);

    update request_graph
    set scored_at = p_grown_at
    where cache_id = p_cache_id;
end
$$;

comment on function semcache.save_centralities(bigint, timestamptz, bigint[], real[], real[], real[], real[]) is
    'Writes the centralities of a cache''s nodes, given as arrays of one length.';
revoke all on function semcache.save_centralities(bigint, timestamptz, bigint[], real[], real[], real[], real[])
    from public;
grant execute on function semcache.save_centralities(bigint, timestamptz, bigint[], real[], real[], real[], real[])
    to semcache_worker;
