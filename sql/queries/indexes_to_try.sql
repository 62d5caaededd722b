-- Approximate indexes that were not tried for so many seconds.
select
    a.scope_id,
    a.embedder_id,
    m.dimensions
from semcache.vector_index a
join semcache.embedder m using (embedder_id)
where a.checked_at is null
   or a.checked_at < now() - make_interval(secs => %(seconds)s)
order by a.checked_at nulls first
