-- As record_invalidation, for many requests of one cache.
-- Caller: evict_entries, as its last step. Locks: an advisory lock until commit. Bound: the keys. Not idempotent.

create or replace function semcache.record_invalidations(p_cache_id bigint, p_exact_keys bytea[])
returns void
language plpgsql
set search_path from current
as $$
declare
    v_id bigint;
begin
    perform pg_advisory_xact_lock(hashtextextended('semcache.invalidation', 0));

    insert into invalidation (invalidation_id, cache_id, exact_key)
    select nextval('invalidation_clock'), p_cache_id, k.exact_key
    from unnest(p_exact_keys) k (exact_key);

    v_id := currval('invalidation_clock');
    perform pg_notify('semcache_invalidation', v_id::text);
end
$$;

comment on function semcache.record_invalidations(bigint, bytea[]) is
    'Records that every replica must forget these requests of a cache.';
revoke all on function semcache.record_invalidations(bigint, bytea[]) from public;
grant execute on function semcache.record_invalidations(bigint, bytea[]) to semcache_worker;
