-- Caches whose request graph has grown since its centralities were computed, those that wait longest first.
select g.cache_id, g.tenant_id, g.grown_at
from semcache.request_graph g
join semcache.cache c using (cache_id)
where (g.scored_at is null or g.scored_at < g.grown_at)
  and c.deleted_at is null
order by g.scored_at nulls first, g.cache_id
limit %(limit)s
