-- Living entries by how often they were served.
create or replace view semcache.hottest
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    u.hits,
    u.last_hit_at,
    left(e.prompt, 80) as prompt,
    m.name as model,
    e.created_at,
    e.expires_at,
    e.entry_id
from semcache.entry_usage u
join semcache.entry e using (entry_id)
join semcache.cache c on c.cache_id = e.cache_id
join semcache.tenant t on t.tenant_id = e.tenant_id
join semcache.scope s using (scope_id)
join semcache.model m using (model_id)
where u.hits > 0
  and e.epoch = c.epoch
  and c.deleted_at is null
  and e.quarantined_at is null
  and (e.expires_at is null or e.expires_at > now())
order by u.hits desc, u.last_hit_at desc;

comment on view semcache.hottest is 'Living entries by how often they were served.';
comment on column semcache.hottest.expires_at is 'When it ends; null: never.';
grant select on semcache.hottest to semcache_app, semcache_worker;
