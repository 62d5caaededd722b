-- All tenants: what their caches hold, and how much they may.
select
    t.name as tenant,
    coalesce(sum(z.entries), 0)::bigint as entries,
    t.max_entries,
    coalesce(sum(z.bytes), 0)::bigint as bytes,
    t.max_bytes
from semcache.tenant t
left join semcache.cache_size z using (tenant_id)
group by t.tenant_id
order by t.name
