-- Long work on caches: how far it is, the newest first.
create or replace view semcache.jobs
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    j.kind,
    j.state,
    j.done,
    j.failed,
    j.total,
    case
        when j.state = 'done' then 100.0
        else round(100.0 * (j.done + j.failed) / nullif(greatest(j.total, j.done + j.failed), 0), 1)
    end as percent,
    j.created_at,
    coalesce(j.ended_at, now()) - j.created_at as took,
    j.errors,
    j.job_id,
    (j.position ->> 'changed')::bigint as changed
from semcache.job j
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = j.tenant_id
order by j.created_at desc;

comment on view semcache.jobs is 'Long work on caches: how far it is, the newest first.';
comment on column semcache.jobs.done is 'Lines or entries that are done.';
comment on column semcache.jobs.failed is 'Lines or entries that could not be done.';
comment on column semcache.jobs.total is 'How many there were at the start.';
comment on column semcache.jobs.took is 'From when it was asked for to its end, or to now.';
comment on column semcache.jobs.errors is 'What could not be done and why, the first 20.';
comment on column semcache.jobs.changed is 'Answers that a revalidation found to be others.';
grant select on semcache.jobs to semcache_app, semcache_worker;
