-- How many requests a cache gets in a second, as of late: its decayed visits over the time that they stand for, which is at
-- most 1 / ln 2 days and less while the graph is young.
-- Caller: claim_prefetch and the task request_graph. Locks: none. Bound: the nodes of the cache.

create or replace function semcache.requests_a_second(p_cache_id bigint)
returns double precision
language sql
stable
set search_path from current
as $$
    select coalesce(sum(decayed_count(n.visits)), 0) / (
        86400 / ln(2) * (1 - power(2, -greatest(extract(epoch from now() - min(g.began_at)), 60)::double precision / 86400))
    )
    from request_graph g
    join node n using (cache_id)
    where g.cache_id = p_cache_id
$$;

comment on function semcache.requests_a_second(bigint) is
    'How many requests a cache gets in a second, as of late; null where it was never asked.';
revoke all on function semcache.requests_a_second(bigint) from public;
grant execute on function semcache.requests_a_second(bigint) to semcache_worker;
