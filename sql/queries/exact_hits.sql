-- How many requests since a time were the same as a stored one and got its answer, or would have in shadow.
select count(*) as hits
from semcache.request_log r
where r.tenant_id = %(tenant_id)s
  and r.cache_id = %(cache_id)s
  and r.at >= %(since)s
  and (r.outcome = 'hit' or (r.outcome = 'shadow' and r.reason = 'same_request'))
