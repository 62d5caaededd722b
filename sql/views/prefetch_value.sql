-- What prefetching was worth, by the centrality that chose: answers used and wasted, and tokens for each.
create or replace view semcache.prefetch_value
with (security_invoker = true)
as
select
    p.tenant,
    p.cache,
    p.measure,
    count(*) as asked,
    count(*) filter (where p.outcome = 'used') as used,
    count(*) filter (where p.outcome = 'waiting') as waiting,
    count(*) filter (where p.outcome = 'wasted') as wasted,
    count(*) filter (where p.outcome in ('failed', 'busy', 'broken off')) as failed,
    round(
        100.0 * count(*) filter (where p.outcome = 'used')
            / nullif(count(*) filter (where p.outcome in ('used', 'wasted')), 0),
        1
    ) as used_percent,
    coalesce(sum(p.hits), 0)::bigint as hits,
    coalesce(sum(p.tokens), 0)::bigint as tokens,
    coalesce(sum(p.tokens) filter (where p.outcome = 'wasted'), 0)::bigint as tokens_wasted,
    round((coalesce(sum(p.cost_ms) filter (where p.outcome = 'used'), 0) / 1000)::numeric, 1) as seconds_not_waited
from semcache.prefetch_log p
group by p.tenant, p.cache, p.measure
order by p.tenant, p.cache, p.measure;

comment on view semcache.prefetch_value is 'What prefetching was worth in the last month, by the centrality that chose: answers used and wasted, and their tokens.';
comment on column semcache.prefetch_value.used is 'Served at least once.';
comment on column semcache.prefetch_value.waiting is 'Living, and not served yet.';
comment on column semcache.prefetch_value.wasted is 'Ended without having been served.';
comment on column semcache.prefetch_value.failed is 'Without an answer: failed, busy or broken off.';
comment on column semcache.prefetch_value.used_percent is 'Of the used and wasted ones; null: there are none.';
comment on column semcache.prefetch_value.hits is 'How often the used ones were served.';
comment on column semcache.prefetch_value.tokens is 'What the model counted for all that was asked.';
comment on column semcache.prefetch_value.tokens_wasted is 'Of these, for the wasted ones.';
comment on column semcache.prefetch_value.seconds_not_waited is 'Time that the model took for the used ones, each counted once.';
grant select on semcache.prefetch_value to semcache_app, semcache_worker;
