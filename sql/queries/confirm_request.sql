-- Note that the answer to a kept request under this revision of its model is there.
with known as (
    update semcache.node n
    set exact_key = %(exact_key)s
    where n.tenant_id = %(tenant_id)s
      and n.cache_id = %(cache_id)s
      and n.request_key = %(request_key)s
    returning n.node_id
)
update semcache.request_body b
set model_key = %(model_key)s
from known k
where b.tenant_id = %(tenant_id)s
  and b.node_id = k.node_id
