-- Why requests of a cache were not served since a time, most frequent first.
select
    r.reason,
    count(*) as requests
from semcache.request_log r
where r.tenant_id = %(tenant_id)s
  and r.cache_id = %(cache_id)s
  and r.outcome in ('miss', 'bypass', 'refresh', 'error')
  and r.at >= %(since)s
group by r.reason
order by requests desc, r.reason
