-- What a cache has learned, for each embedder.
select
    k.embedder,
    k.observations,
    k.budget,
    k.per,
    k.confidence,
    k.cut,
    k.false_hits,
    k.false_hits_at_most,
    k.hits,
    k.missing,
    k.fitted_at,
    k.tightened_at
from semcache.calibrations k
where k.cache_id = %(cache_id)s
