-- A request that is kept to be asked again.
select b.tenant_id, t.name as tenant, c.name as cache, b.endpoint, b.model, b.body::text as body, b.tags, b.ttl_ms
from semcache.request_body b
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = b.tenant_id
where b.tenant_id = %(tenant_id)s
  and b.node_id = %(node_id)s
