-- Where to begin: each cache, what it holds and how it served in the last day.
create or replace view semcache.overview
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    held.entries,
    pg_size_pretty(held.bytes) as answers,
    held.newest,
    served.lookups,
    round(100.0 * served.hits / nullif(served.lookups, 0), 1) as hit_percent,
    round(100.0 * served.semantic_hits / nullif(served.lookups, 0), 1) as semantic_percent,
    served.tokens_saved,
    round(served.latency_p50_ms::numeric, 2) as p50_ms,
    round(served.latency_p99_ms::numeric, 2) as p99_ms
from semcache.cache c
join semcache.tenant t using (tenant_id)
cross join lateral (
    select
        count(*) as entries,
        coalesce(sum(o.bytes), 0)::bigint as bytes,
        max(e.created_at) as newest
    from semcache.entry e
    join semcache.output o using (output_id)
    where e.cache_id = c.cache_id
      and e.epoch = c.epoch
      and (e.expires_at is null or e.expires_at > now())
) held
cross join lateral (
    select
        count(*) as lookups,
        count(*) filter (where r.outcome in ('hit', 'semantic_hit', 'coalesced', 'stale')) as hits,
        count(*) filter (where r.outcome = 'semantic_hit') as semantic_hits,
        sum(r.tokens_saved) as tokens_saved,
        percentile_cont(0.5) within group (order by r.latency_ms) as latency_p50_ms,
        percentile_cont(0.99) within group (order by r.latency_ms) as latency_p99_ms
    from semcache.request_log r
    where r.cache_id = c.cache_id
      and r.at > now() - interval '1 day'
) served
where c.deleted_at is null
order by served.lookups desc, t.name, c.name;

comment on view semcache.overview is 'Where to begin: each cache, what it holds, and how it served in the last day.';
comment on column semcache.overview.entries is 'Entries that have neither expired nor been flushed.';
comment on column semcache.overview.answers is 'What their answers take.';
comment on column semcache.overview.lookups is 'Requests of the last day, as are those of all columns that follow.';
comment on column semcache.overview.hit_percent is 'Of the lookups: served without a call of their own to the model.';
comment on column semcache.overview.semantic_percent is 'Of the lookups: served by similarity.';
comment on column semcache.overview.tokens_saved is 'Tokens of the answers that were served.';
comment on column semcache.overview.p50_ms is 'Median of the time that the cache took.';
comment on column semcache.overview.p99_ms is '99th percentile of the time that the cache took.';
grant select on semcache.overview to semcache_app, semcache_worker;
