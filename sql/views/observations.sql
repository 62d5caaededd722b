-- What was found out, by who says so and by similarity in steps of 0.05: how often the answer was wrong, with its interval.
-- Rates of feedback are no rates of the cache: people tell of what went wrong.
create or replace view semcache.observations
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    b.source,
    b.served,
    b.similarity_from,
    b.verdicts,
    b.wrong,
    b.stale,
    round((100.0 * b.wrong / b.verdicts)::numeric, 2) as wrong_percent,
    round((100 * w.low)::numeric, 2) as wrong_percent_from,
    round((100 * w.high)::numeric, 2) as wrong_percent_to,
    b.newest
from (
    select
        o.cache_id,
        o.source,
        o.served,
        round(floor(o.similarity::numeric * 20) / 20, 2) as similarity_from,
        count(*) as verdicts,
        count(*) filter (where o.verdict = 'wrong') as wrong,
        count(*) filter (where o.verdict = 'stale') as stale,
        max(o.at) as newest
    from semcache.observation o
    group by o.cache_id, o.source, o.served, similarity_from
) b
join semcache.cache c using (cache_id)
join semcache.tenant t using (tenant_id)
cross join lateral semcache.wilson(b.wrong, b.verdicts) w
where c.deleted_at is null
order by t.name, c.name, b.source, b.served, b.similarity_from desc;

comment on view semcache.observations is 'What was found out, by who says so and by similarity: how often the answer was wrong, with its interval.';
comment on column semcache.observations.source is 'Who says so: feedback of a caller, or a comparison with a fresh answer. Only what was drawn at random says how often answers are wrong.';
comment on column semcache.observations.similarity_from is 'Least similarity of the step of 0.05; null where it is not known.';
comment on column semcache.observations.stale is 'Verdicts that the answer was once right and is no more; they are not counted as wrong.';
comment on column semcache.observations.wrong_percent is 'Of the verdicts.';
comment on column semcache.observations.wrong_percent_from is 'Lower end of its interval (Wilson, 95 %).';
comment on column semcache.observations.wrong_percent_to is 'Upper end of its interval.';
grant select on semcache.observations to semcache_app, semcache_worker;
