-- Why requests of the last day were not served, each cache for itself.
create or replace view semcache.misses_by_reason
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    r.outcome,
    r.reason,
    count(*) as requests,
    round(100.0 * count(*) / sum(count(*)) over (partition by c.cache_id), 1) as percent,
    round(avg(r.similarity)::numeric, 3) as mean_similarity
from semcache.request_log r
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = r.tenant_id
where r.outcome in ('miss', 'bypass', 'refresh', 'error')
  and r.at > now() - interval '1 day'
group by t.name, c.cache_id, c.name, r.outcome, r.reason
order by requests desc;

comment on view semcache.misses_by_reason is 'Why requests of the last day were not served.';
comment on column semcache.misses_by_reason.percent is 'Of the requests of the cache that were not served.';
comment on column semcache.misses_by_reason.mean_similarity is 'Of the nearest entries; null: none was looked at.';
grant select on semcache.misses_by_reason to semcache_app, semcache_worker;
