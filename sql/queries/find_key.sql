-- Whose this API key is.
select
    k.tenant_id,
    t.name as tenant
from semcache.api_key k
join semcache.tenant t using (tenant_id)
where k.key_hash = %(key_hash)s
  and k.revoked_at is null
