-- Keep what was fitted for a cache and an embedder, with the fits of single entries; replicas forget the older. An entry
-- that is given without a fit loses the one it had.
-- Caller: the worker's task calibrate. Locks: the rows, the fits in the order of entries, then record_invalidation's.
-- Bound: one calibration, and the fits given. Null, and nothing is kept, where the cache is gone. Idempotent.

create or replace function semcache.save_calibration(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_embedder_id integer,
    p_model jsonb,
    p_frequencies jsonb,
    p_pooled jsonb,
    p_observations integer,
    p_learned bigint,
    p_fits jsonb
)
returns bigint
language plpgsql
set search_path from current
as $$
begin
    perform
    from cache c
    where c.tenant_id = p_tenant_id
      and c.cache_id = p_cache_id
      and c.deleted_at is null;

    if not found then
        return null;
    end if;

    insert into calibration (tenant_id, cache_id, embedder_id, model, frequencies, pooled, observations, learned)
    values (
        p_tenant_id, p_cache_id, p_embedder_id, p_model, p_frequencies, p_pooled, p_observations, p_learned
    )
    on conflict (cache_id, embedder_id) do update
    set model = excluded.model,
        frequencies = excluded.frequencies,
        pooled = excluded.pooled,
        observations = excluded.observations,
        learned = excluded.learned,
        fitted_at = now();

    insert into entry_fit (entry_id, embedder_id, tenant_id, slope, middle, variance, n)
    select f.entry_id, p_embedder_id, p_tenant_id, f.slope, f.middle, f.variance, f.n
    from jsonb_to_recordset(p_fits) as f (
        entry_id uuid, slope double precision, middle double precision, variance double precision, n integer
    )
    join entry e using (entry_id)
    where e.tenant_id = p_tenant_id
      and e.cache_id = p_cache_id
      and f.n is not null
    order by f.entry_id
    on conflict (entry_id, embedder_id) do update
    set slope = excluded.slope,
        middle = excluded.middle,
        variance = excluded.variance,
        n = excluded.n;

    delete from entry_fit f
    using jsonb_to_recordset(p_fits) as g (entry_id uuid, n integer)
    where f.tenant_id = p_tenant_id
      and f.entry_id = g.entry_id
      and f.embedder_id = p_embedder_id
      and g.n is null;

    return record_invalidation(p_cache_id, null);
end
$$;

comment on function semcache.save_calibration(bigint, bigint, integer, jsonb, jsonb, jsonb, integer, bigint, jsonb) is
    'Keeps what was fitted for a cache, with the fits of single entries, and returns the invalidation''s number; null where the cache is gone.';
revoke all on function semcache.save_calibration(bigint, bigint, integer, jsonb, jsonb, jsonb, integer, bigint, jsonb) from public;
grant execute on function semcache.save_calibration(bigint, bigint, integer, jsonb, jsonb, jsonb, integer, bigint, jsonb) to semcache_worker;
