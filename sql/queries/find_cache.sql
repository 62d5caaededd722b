-- A cache by its name.
select
    c.cache_id,
    c.name,
    c.policy,
    c.epoch,
    c.changes,
    c.created_at,
    c.updated_at
from semcache.cache c
where c.tenant_id = %(tenant_id)s
  and c.name = %(name)s
  and c.deleted_at is null
