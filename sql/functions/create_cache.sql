-- Make a cache.
-- Caller: POST of the data API, and the service for the cache named default. Bound: one row. Errors: SC409 when the name is taken.

create or replace function semcache.create_cache(p_tenant_id bigint, p_name text, p_policy jsonb)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_cache_id bigint;
begin
    insert into cache (tenant_id, name, policy)
    values (p_tenant_id, p_name, p_policy)
    on conflict (tenant_id, name) where deleted_at is null do nothing
    returning cache_id into v_cache_id;

    if v_cache_id is null then
        raise exception 'a cache of this name exists'
            using errcode = 'SC409';
    end if;

    insert into audit_log (tenant_id, cache_id, action, detail)
    values (p_tenant_id, v_cache_id, 'create_cache', jsonb_build_object('policy', p_policy));

    return v_cache_id;
end
$$;

comment on function semcache.create_cache(bigint, text, jsonb) is 'Makes a cache and returns its number.';
revoke all on function semcache.create_cache(bigint, text, jsonb) from public;
grant execute on function semcache.create_cache(bigint, text, jsonb) to semcache_app, semcache_worker;
