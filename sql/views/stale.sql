-- Rows that are not served any more, and why: expired, quarantined, flushed, or of a deleted cache.
create or replace view semcache.stale
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    case
        when c.deleted_at is not null then 'cache deleted'
        when e.epoch < c.epoch then 'flushed'
        when e.quarantined_at is not null then 'quarantined'
        else 'expired'
    end as why,
    case
        when c.deleted_at is not null then c.deleted_at
        when e.epoch < c.epoch then c.updated_at
        when e.quarantined_at is not null then e.quarantined_at
        else e.expires_at
    end as since,
    left(e.prompt, 80) as prompt,
    e.entry_id
from semcache.entry e
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = e.tenant_id
where c.deleted_at is not null
   or e.epoch < c.epoch
   or e.quarantined_at is not null
   or e.expires_at <= now()
order by since desc;

comment on view semcache.stale is 'Rows that are not served any more, and why. Flushed and long expired ones are removed in the background.';
comment on column semcache.stale.since is 'When it ceased to be served; of a flushed entry, when its cache was last changed.';
grant select on semcache.stale to semcache_app, semcache_worker;
