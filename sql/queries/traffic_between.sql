-- How many requests the cache looked up in a time, how many were the same as a stored one, which got its answer or in
-- shadow would have, and how many got a neighbour's.
select
    count(*) as requests,
    count(*) filter (
        where r.outcome = 'hit'
           or (r.outcome = 'shadow' and r.reason = 'same_request')
    ) as exact_hits,
    count(*) filter (where r.outcome = 'semantic_hit') as semantic_hits
from semcache.request_log r
where r.tenant_id = %(tenant_id)s
  and r.cache_id = %(cache_id)s
  and r.at >= %(since)s
  and r.at < coalesce(%(until)s::timestamptz, 'infinity')
  and r.outcome in ('hit', 'semantic_hit', 'miss', 'shadow')
