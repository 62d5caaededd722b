-- Take the next batch of the job that has waited longest (or of this one), whose lease nobody holds.
update semcache.job j
set state = 'running',
    holder = %(holder)s,
    leased_until = clock_timestamp() + make_interval(secs => %(seconds)s),
    touched_at = clock_timestamp()
from semcache.cache c
join semcache.tenant t using (tenant_id)
where c.cache_id = j.cache_id
  and j.job_id = (
      select x.job_id
      from semcache.job x
      where x.state in ('queued', 'running')
        and (x.leased_until is null or x.leased_until < clock_timestamp())
        and (%(job_id)s::uuid is null or x.job_id = %(job_id)s)
      order by x.touched_at, x.job_id
      limit 1
      for update skip locked
  )
returning
    j.job_id,
    j.tenant_id,
    t.name as tenant,
    c.cache_id,
    c.name as cache,
    j.kind,
    j.position
