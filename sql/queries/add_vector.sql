-- Give an entry a vector of another embedder, if it is still there and has none.
insert into semcache.embedding (tenant_id, embedder_id, scope_id, entry_id, vector)
select e.tenant_id, %(embedder_id)s, e.scope_id, e.entry_id, %(vector)s::halfvec
from semcache.entry e
where e.tenant_id = %(tenant_id)s
  and e.entry_id = %(entry_id)s
for key share
on conflict (entry_id, embedder_id) do nothing
