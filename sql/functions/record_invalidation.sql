-- Record what every replica must forget, and tell them.
-- Caller: the functions that change what may be served, as their last step.
-- Locks: an advisory lock until commit, so that numbers follow commits; renew_lease takes it shared.
-- Bound: one row, which purge_entries removes. Not idempotent.

create or replace function semcache.record_invalidation(p_cache_id bigint, p_exact_key bytea)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_id bigint;
begin
    perform pg_advisory_xact_lock(hashtextextended('semcache.invalidation', 0));

    insert into invalidation (invalidation_id, cache_id, exact_key)
    values (nextval('invalidation_clock'), p_cache_id, p_exact_key)
    returning invalidation_id into v_id;

    perform pg_notify('semcache_invalidation', v_id::text);
    return v_id;
end
$$;

comment on function semcache.record_invalidation(bigint, bytea) is
    'Records what every replica must forget (a request of a cache; a whole cache; everything) and returns its number.';
revoke all on function semcache.record_invalidation(bigint, bytea) from public;
grant execute on function semcache.record_invalidation(bigint, bytea) to semcache_app, semcache_worker;
