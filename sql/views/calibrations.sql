-- What the policies have learned: on how many labelled requests it rests, and where the boundary lies.
create or replace view semcache.calibrations
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    e.name as embedder,
    k.observations,
    (k.model #>> '{budget,rate}')::float8 as budget,
    k.model #>> '{budget,per}' as per,
    (k.model #>> '{budget,confidence}')::float8 as confidence,
    (k.model #>> '{boundary,cut}')::float8 as cut,
    (k.model #>> '{boundary,rate}')::float8 as false_hits,
    (k.model #>> '{boundary,upper}')::float8 as false_hits_at_most,
    (k.model #>> '{boundary,hits}')::bigint as hits,
    nullif(k.model #>> '{boundary,missing}', '') as missing,
    (k.pooled ->> 'middle')::float8 as verified_middle,
    (k.pooled ->> 'n')::bigint as verified_on,
    (k.frequencies ->> 'total')::bigint as entries_counted,
    k.fitted_at,
    k.tightened_at,
    k.cache_id,
    k.embedder_id
from semcache.calibration k
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = k.tenant_id
join semcache.embedder e using (embedder_id)
where c.deleted_at is null
order by t.name, c.name, e.embedder_id;

comment on view semcache.calibrations is 'What the policies have learned: on how many labelled requests it rests, and where the boundary lies.';
comment on column semcache.calibrations.observations is 'Labelled requests that the fit rests on.';
comment on column semcache.calibrations.budget is 'Most false hits that the policy calibrated may serve, as a share, 0 to 1; null: nothing was fitted, or an alarm of drift threw it away.';
comment on column semcache.calibrations.per is 'What they are counted per: semantic_hit or served_hit.';
comment on column semcache.calibrations.confidence is 'Of the upper bound that must keep the budget, one-sided.';
comment on column semcache.calibrations.cut is 'Probability of being right from which an answer is served; null: none is, by similarity.';
comment on column semcache.calibrations.false_hits is 'Share of wrong answers among those that the cut would have served.';
comment on column semcache.calibrations.false_hits_at_most is 'Its upper bound, which keeps the budget.';
comment on column semcache.calibrations.hits is 'How many labelled requests the cut would have served.';
comment on column semcache.calibrations.missing is 'What it would take to serve; null: nothing is missing.';
comment on column semcache.calibrations.verified_middle is 'The policy verified: similarity at which an answer is as likely right as wrong, over all entries; null: too few labels.';
comment on column semcache.calibrations.verified_on is 'Labels that this rests on.';
comment on column semcache.calibrations.entries_counted is 'Entries whose words were counted, for how rare a word is.';
comment on column semcache.calibrations.tightened_at is 'When an alarm of drift threw away what was learned; null: never.';
grant select on semcache.calibrations to semcache_app, semcache_worker;
