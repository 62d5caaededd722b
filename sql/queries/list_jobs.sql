-- Jobs of a cache, the newest first; or this one.
select
    j.job_id,
    j.kind,
    j.state,
    j.done,
    j.failed,
    j.total,
    coalesce((j.position ->> 'changed')::bigint, 0) as changed,
    j.errors,
    j.created_at,
    j.ended_at
from semcache.job j
where j.tenant_id = %(tenant_id)s
  and j.cache_id = %(cache_id)s
  and (%(job_id)s::uuid is null or j.job_id = %(job_id)s)
order by j.created_at desc, j.job_id
limit %(limit)s
