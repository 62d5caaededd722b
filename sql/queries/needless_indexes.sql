-- Approximate indexes of caches that are deleted, and of scopes that have shrunk to less than half of what is scanned exactly.
select
    a.scope_id,
    a.embedder_id
from semcache.vector_index a
join semcache.scope s using (scope_id)
join semcache.cache c using (cache_id)
where c.deleted_at is not null
   or (
       select count(*)
       from (
           select
           from semcache.embedding v
           where v.scope_id = a.scope_id
             and v.embedder_id = a.embedder_id
           limit %(exact_scan_limit)s
       ) held
   ) * 2 < %(exact_scan_limit)s
