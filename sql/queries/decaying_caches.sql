-- Caches with a limit whose entries give way by decayed use, with how many fit and the half-life now.
select
    k.cache_id,
    k.room,
    k.half_life
from semcache.capacity k
where k.room is not null
  and k.half_life is not null
  and k.eviction = 'lfu-decay-cost'
order by k.cache_id
