-- Keep the batch of a job that this holder does.
update semcache.job
set leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
where tenant_id = %(tenant_id)s
  and job_id = %(job_id)s
  and holder = %(holder)s
  and state = 'running'
