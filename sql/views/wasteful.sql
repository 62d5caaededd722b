-- Living entries that take room and were never served, largest first.
create or replace view semcache.wasteful
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    pg_size_pretty(o.bytes::bigint) as answer,
    o.bytes,
    now() - e.created_at as age,
    e.provenance,
    left(e.prompt, 80) as prompt,
    e.entry_id
from semcache.entry e
join semcache.output o using (output_id)
join semcache.cache c on c.cache_id = e.cache_id
join semcache.tenant t on t.tenant_id = e.tenant_id
join semcache.entry_usage u using (entry_id)
where u.hits = 0
  and e.epoch = c.epoch
  and c.deleted_at is null
  and e.quarantined_at is null
  and (e.expires_at is null or e.expires_at > now())
order by o.bytes desc, e.created_at;

comment on view semcache.wasteful is 'Living entries that take room and were never served, largest first.';
comment on column semcache.wasteful.bytes is 'Size of the answer as text.';
comment on column semcache.wasteful.provenance is 'Where it comes from: upstream, client, prefetch or import.';
grant select on semcache.wasteful to semcache_app, semcache_worker;
