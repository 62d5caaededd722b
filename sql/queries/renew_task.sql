-- Keep the lease on a running task; no row where another worker has taken it.
update semcache.task
set leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
where name = %(name)s
  and holder = %(holder)s
  and outcome = 'running'
returning name
