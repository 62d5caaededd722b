-- Keep the lead of every flight that this replica still has.
update semcache.lease
set expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
where name = any (%(names)s)
  and holder = %(holder)s
