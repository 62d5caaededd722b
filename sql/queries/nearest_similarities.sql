-- How near the nearest entry was to the requests of a cache since a time, in steps of 0.005 of similarity, and what came
-- of them; step null: exact hits and requests that met no neighbour. What a cache in shadow mode would have served counts
-- as served.
select
    case when not r.exact then floor(r.similarity * 200 + 0.001)::int end as step,
    count(*) as requests,
    count(*) filter (where r.exact) as exact_hits,
    count(*) filter (where not r.exact and r.reason = 'accepted') as semantic_hits,
    count(*) filter (where r.reason = 'below_threshold') as below_threshold
from (
    select
        l.outcome in ('hit', 'coalesced', 'stale') or l.reason = 'same_request' as exact,
        l.reason,
        l.similarity
    from semcache.request_log l
    where l.tenant_id = %(tenant_id)s
      and l.cache_id = %(cache_id)s
      and l.at >= %(since)s
) r
group by 1
order by 1 nulls first
