-- The scope that an entry is in.
select
    s.scope_id,
    s.ann_index
from semcache.entry e
join semcache.scope s using (scope_id)
where e.tenant_id = %(tenant_id)s
  and e.cache_id = %(cache_id)s
  and e.entry_id = %(entry_id)s
