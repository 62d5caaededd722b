-- Keep the request graph of each cache in bounds: of the edges and nodes beyond them those of least weight go, and all
-- nodes that were not asked for so long, or whose cache was deleted. Edges, centralities and kept requests go with their
-- nodes; kept requests also where the cache's policy has prefetch off by now, and old rows of prefetch.
-- Caller: the worker's task request_graph, after it has added to the graph, again and again until it returns 0.
-- Locks: the rows that go. Bound: p_limit rows of each kind in each cache that has grown in the last hour, and p_limit
-- rows of each other kind.

create or replace function semcache.trim_graph(p_nodes integer, p_edges integer, p_limit integer, p_keep interval)
returns integer
language plpgsql
set search_path from current
as $$
declare
    v_cache_id bigint;
    v_more integer;
    v_rows integer;
    v_removed integer := 0;
begin
    delete from node n
    where n.node_id in (
        select x.node_id
        from node x
        join cache c using (cache_id)
        where c.deleted_at is not null
           or x.last_at < now() - p_keep
        limit p_limit
    );
    get diagnostics v_removed = row_count;

    delete from request_body b
    where b.node_id in (
        select x.node_id
        from cache c
        join request_body x using (cache_id)
        where not c.policy @> '{"prefetch": true}'
        limit p_limit
    );
    get diagnostics v_rows = row_count;
    v_removed := v_removed + v_rows;

    delete from prefetch p
    where p.prefetch_id in (
        select x.prefetch_id
        from prefetch x
        where x.at < now() - p_keep
        limit p_limit
    );
    get diagnostics v_rows = row_count;
    v_removed := v_removed + v_rows;

    for v_cache_id in
        select g.cache_id
        from request_graph g
        where g.grown_at > now() - interval '1 hour'
    loop
        select count(*) - p_edges
        into v_more
        from transition
        where cache_id = v_cache_id;

        if v_more > 0 then
            delete from transition t
            using (
                select x.from_node, x.to_node
                from transition x
                where x.cache_id = v_cache_id
                order by x.weight, x.from_node, x.to_node
                limit least(v_more, p_limit)
            ) least_weight
            where t.from_node = least_weight.from_node
              and t.to_node = least_weight.to_node;
            get diagnostics v_rows = row_count;
            v_removed := v_removed + v_rows;
        end if;

        select count(*) - p_nodes
        into v_more
        from node
        where cache_id = v_cache_id;

        if v_more > 0 then
            delete from node n
            using (
                select x.node_id
                from node x
                where x.cache_id = v_cache_id
                order by x.visits, x.node_id
                limit least(v_more, p_limit)
            ) least_weight
            where n.node_id = least_weight.node_id;
            get diagnostics v_rows = row_count;
            v_removed := v_removed + v_rows;
        end if;
    end loop;

    return v_removed;
end
$$;

comment on function semcache.trim_graph(integer, integer, integer, interval) is
    'Removes what is beyond the bounds of the request graphs, least weight first; returns how many rows went.';
revoke all on function semcache.trim_graph(integer, integer, integer, interval) from public;
grant execute on function semcache.trim_graph(integer, integer, integer, interval) to semcache_worker;
