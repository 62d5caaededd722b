-- Keep what was fitted for a cache and an embedder, with what labels say of single entries; replicas forget the older.
-- Caller: the worker's task calibrate. Locks: the rows, the fits in the order of entries, then record_invalidation's.
-- Bound: one calibration, and the fits given. Null, and nothing is kept, where the cache is gone, or where an alarm of
-- drift has thrown away what was learned since p_tightened_at, the last one that the fit knew of. Idempotent.

create or replace function semcache.save_calibration(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_embedder_id integer,
    p_model jsonb,
    p_frequencies jsonb,
    p_pooled jsonb,
    p_observations integer,
    p_learned bigint,
    p_fits jsonb,
    p_tightened_at timestamptz default null
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
        fitted_at = now()
    where calibration.tightened_at is not distinct from p_tightened_at;

    if not found then
        return null;
    end if;

    insert into entry_fit (entry_id, embedder_id, tenant_id, slope, middle, variance, n, confirmed, refuted)
    select f.entry_id, p_embedder_id, p_tenant_id, f.slope, f.middle, f.variance, f.n, f.confirmed, f.refuted
    from jsonb_to_recordset(p_fits) as f (
        entry_id uuid, slope double precision, middle double precision, variance double precision, n integer,
        confirmed integer, refuted integer
    )
    join entry e using (entry_id)
    where e.tenant_id = p_tenant_id
      and e.cache_id = p_cache_id
    order by f.entry_id
    on conflict (entry_id, embedder_id) do update
    set slope = excluded.slope,
        middle = excluded.middle,
        variance = excluded.variance,
        n = excluded.n,
        confirmed = excluded.confirmed,
        refuted = excluded.refuted;

    return record_invalidation(p_cache_id, null);
end
$$;

comment on function semcache.save_calibration(bigint, bigint, integer, jsonb, jsonb, jsonb, integer, bigint, jsonb, timestamptz) is
    'Keeps what was fitted for a cache, with the fits of single entries, and returns the invalidation''s number; null where the cache is gone or an alarm of drift came meanwhile.';
revoke all on function semcache.save_calibration(bigint, bigint, integer, jsonb, jsonb, jsonb, integer, bigint, jsonb, timestamptz) from public;
grant execute on function semcache.save_calibration(bigint, bigint, integer, jsonb, jsonb, jsonb, integer, bigint, jsonb, timestamptz) to semcache_worker;
