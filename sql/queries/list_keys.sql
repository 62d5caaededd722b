-- All API keys, as `pgsemcache keys list` shows them.
select
    k.api_key_id,
    t.name as tenant,
    k.hint,
    k.created_at,
    k.revoked_at
from semcache.api_key k
join semcache.tenant t using (tenant_id)
order by k.api_key_id
