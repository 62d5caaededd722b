-- Names of the models that kept requests of caches with prefetch are for.
select distinct b.model
from semcache.cache c
join semcache.request_body b using (cache_id)
where c.deleted_at is null
  and c.policy @> '{"prefetch": true}'
order by b.model
