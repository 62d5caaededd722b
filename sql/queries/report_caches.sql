-- Whether the workload report has a cache to tell of.
select
from semcache.cache c
join semcache.tenant t using (tenant_id)
where (%(cache)s::text is null or c.name = %(cache)s)
  and (%(tenant)s::text is null or t.name = %(tenant)s)
  and c.deleted_at is null
limit 1
