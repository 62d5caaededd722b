-- Each cache with each embedder that it has vectors of, and what is new since it was calibrated: labelled requests,
-- whether somebody called an answer wrong, and whether its entries have grown by a tenth.
-- Reads new rows only; the hour allows for transactions that were open while the last calibration was fitted.
select
    c.tenant_id,
    c.cache_id,
    c.name,
    c.policy,
    c.epoch,
    c.changes,
    c.created_at,
    c.updated_at,
    e.embedder_id,
    k.model -> 'budget' as budget,
    coalesce(k.observations, 0) as observations,
    coalesce(k.fitted_at < now() - interval '1 day', false) as old,
    k.tightened_at,
    coalesce(fresh.last, k.learned, 0) as last,
    coalesce(k.learned, 0) as learned,
    fresh.requests,
    coalesce(fresh.alarming, false) as alarming,
    exists (
        select
        from semcache.entry n
        where n.tenant_id = c.tenant_id
          and n.cache_id = c.cache_id
          and n.epoch = c.epoch
          and n.created_at > coalesce(k.fitted_at, '-infinity')
        offset 20 + coalesce((k.frequencies ->> 'total')::bigint, 0) / 10
    ) as grown
from semcache.cache c
cross join semcache.embedder e
left join semcache.calibration k on k.cache_id = c.cache_id and k.embedder_id = e.embedder_id
cross join lateral (
    select
        count(distinct o.request_id) as requests,
        max(o.observation_id) as last,
        bool_or(o.verdict = 'wrong' and o.source in ('feedback', 'audit')) as alarming
    from semcache.observation o
    where o.tenant_id = c.tenant_id
      and o.cache_id = c.cache_id
      and o.embedder_id = e.embedder_id
      and o.observation_id > coalesce(k.learned, 0)
      and o.at > coalesce(k.fitted_at - interval '1 hour', '-infinity')
) fresh
where c.deleted_at is null
  and exists (
      select
      from semcache.scope s
      join semcache.embedding v on v.scope_id = s.scope_id and v.embedder_id = e.embedder_id
      where s.tenant_id = c.tenant_id
        and s.cache_id = c.cache_id
  )
order by c.cache_id, e.embedder_id
