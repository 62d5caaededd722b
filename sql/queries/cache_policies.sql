-- Every cache with its policy, for a worker, who sees all tenants.
select
    t.name as tenant,
    c.name as cache,
    c.policy
from semcache.cache c
join semcache.tenant t using (tenant_id)
order by t.name, c.name
