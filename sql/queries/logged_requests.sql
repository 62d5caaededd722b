-- What requests of a cache got that had this id, the newest first.
select
    r.at,
    r.outcome,
    r.reason,
    replace(r.entry_id::text, '-', '') as entry_id,
    r.similarity,
    r.latency_ms,
    r.stages,
    r.tokens_saved,
    r.tokens_spent
from semcache.request_log r
where r.tenant_id = %(tenant_id)s
  and r.cache_id = %(cache_id)s
  and r.request_id = %(request_id)s
order by r.at desc, r.request_log_id desc
limit 20
