-- The scope that an entry is in.
select
    s.scope_id,
    array(
        select a.embedder_id
        from semcache.vector_index a
        where a.scope_id = s.scope_id
    ) as indexed_by
from semcache.entry e
join semcache.scope s using (scope_id)
where e.tenant_id = %(tenant_id)s
  and e.entry_id = %(entry_id)s
  and s.cache_id = %(cache_id)s
