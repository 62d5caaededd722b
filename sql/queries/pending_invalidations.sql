-- What a replica has yet to forget, up to what it was told of. A gap at the start means that it is too far behind.
select
    i.invalidation_id,
    i.cache_id,
    i.exact_key
from semcache.invalidation i
where i.invalidation_id > %(confirmed)s
  and i.invalidation_id <= %(head)s
order by i.invalidation_id
