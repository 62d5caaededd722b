-- Served answers that were found wrong, by somebody or by an audit, with the prompts on both sides and how near they were.
create or replace view semcache.false_hits
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    o.at,
    o.source,
    o.similarity,
    left(o.prompt, 80) as asked,
    left(e.prompt, 80) as stored,
    o.entry_id,
    e.quarantined_at
from semcache.observation o
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = o.tenant_id
left join semcache.entry e on e.entry_id = o.entry_id
where o.verdict = 'wrong'
  and (o.served or o.source = 'feedback')
order by o.at desc;

comment on view semcache.false_hits is 'Served answers that were found wrong, by somebody or by an audit, with the prompts on both sides and how near they were.';
grant select on semcache.false_hits to semcache_app, semcache_worker;
