-- What was fitted for a cache, for each embedder that it was fitted for.
select
    c.embedder_id,
    c.model,
    c.frequencies,
    c.pooled
from semcache.calibration c
where c.tenant_id = %(tenant_id)s
  and c.cache_id = %(cache_id)s
