-- How requests of a cache were served since a time, by tier: for each step, and (step null) for all of them.
-- An exact hit that never asked the database came from memory.
select
    r.tier,
    r.step,
    count(*) as requests,
    percentile_cont(0.5) within group (order by r.latency_ms) as p50_ms,
    percentile_cont(0.95) within group (order by r.latency_ms) as p95_ms
from (
    select
        case
            when l.outcome = 'semantic_hit' then 'semantic'
            when l.outcome <> 'hit' then l.outcome
            when l.stages ? 'exact' then 'exact'
            else 'memory'
        end as tier,
        date_bin(%(step)s, l.at, 'epoch') as step,
        l.latency_ms
    from semcache.request_log l
    where l.tenant_id = %(tenant_id)s
      and l.cache_id = %(cache_id)s
      and l.at >= %(since)s
) r
group by grouping sets ((r.tier, r.step), (r.tier))
order by r.tier, r.step nulls first
