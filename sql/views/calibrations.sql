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
grant select on semcache.calibrations to semcache_app, semcache_worker;
