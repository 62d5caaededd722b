-- Caches that are over a limit, fullest first.
select k.cache_id
from semcache.capacity k
where k.full_percent > 100
order by k.full_percent desc, k.cache_id
