-- After an alarm of drift: throw away what a cache has learned with an embedder, so that it is strict until it has labels
-- from now on, and change its policy by the keys given, none for null.
-- Caller: the worker's task drift. Locks: the cache's row, the calibration, then record_invalidation's.
-- Bound: one cache, and the fits of its entries. Null, and nothing is done, where the cache is gone.

create or replace function semcache.tighten_cache(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_embedder_id integer,
    p_policy jsonb,
    p_detail jsonb
)
returns bigint
language plpgsql
set search_path from current
as $$
begin
    update cache c
    set policy = c.policy || coalesce(p_policy, '{}'),
        changes = c.changes + (p_policy is not null)::integer,
        updated_at = now()
    where c.tenant_id = p_tenant_id
      and c.cache_id = p_cache_id
      and c.deleted_at is null;

    if not found then
        return null;
    end if;

    insert into calibration (tenant_id, cache_id, embedder_id, frequencies, observations, learned, tightened_at)
    values (p_tenant_id, p_cache_id, p_embedder_id, '{"total": 0, "counts": {}}', 0, 0, now())
    on conflict (cache_id, embedder_id) do update
    set model = null,
        pooled = null,
        observations = 0,
        tightened_at = now();

    delete from entry_fit f
    using entry e
    where e.entry_id = f.entry_id
      and e.tenant_id = p_tenant_id
      and e.cache_id = p_cache_id
      and f.embedder_id = p_embedder_id;

    insert into audit_log (tenant_id, cache_id, action, detail)
    values (p_tenant_id, p_cache_id, 'tighten', p_detail || jsonb_build_object('policy', p_policy));

    return record_invalidation(p_cache_id, null);
end
$$;

comment on function semcache.tighten_cache(bigint, bigint, integer, jsonb, jsonb) is
    'Throws away what a cache has learned after an alarm of drift, changes its policy by the keys given, and returns the invalidation''s number; null where the cache is gone.';
revoke all on function semcache.tighten_cache(bigint, bigint, integer, jsonb, jsonb) from public;
grant execute on function semcache.tighten_cache(bigint, bigint, integer, jsonb, jsonb) to semcache_worker;
