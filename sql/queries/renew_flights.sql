-- Keep the lead of every flight that this replica still has.
update semcache.lease l
set expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
from unnest(%(names)s::text[], %(holders)s::uuid[]) as held (name, holder)
where l.name = held.name
  and l.holder = held.holder
