-- Verdicts on the nearest neighbours of requests of a cache since a time, in steps of 0.005 of similarity. Drawn ones were
-- chosen at random, with a weight (the inverse of their chance); the others are what somebody reported. A verdict of
-- stale is about time, and what a guard blocked is not served at any threshold: neither counts.
select
    floor(o.similarity * 200 + 0.001)::int as step,
    count(*) filter (where o.inclusion is not null) as drawn,
    coalesce(sum(1 / o.inclusion), 0)::float8 as weight,
    coalesce(sum(1 / o.inclusion ^ 2), 0)::float8 as squares,
    coalesce(sum(1 / o.inclusion) filter (where o.verdict = 'wrong'), 0)::float8 as wrong,
    count(*) filter (where o.inclusion is null) as reported,
    count(*) filter (where o.inclusion is null and o.verdict = 'wrong') as reported_wrong
from semcache.observation o
where o.tenant_id = %(tenant_id)s
  and o.cache_id = %(cache_id)s
  and o.at >= %(since)s
  and o.verdict <> 'stale'
  and o.similarity is not null
  and coalesce(o.rank, 0) = 0
  and (o.inclusion is null or o.signals is not null)
group by step
order by step
