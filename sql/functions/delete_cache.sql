-- Delete a cache: it is gone at once, its rows are removed in the background. The one named default begins anew, empty
-- and with the default policy.
-- Caller: DELETE of the data API. Locks: the cache's row, then record_invalidation's. Bound: one row. Errors: SC404.

create or replace function semcache.delete_cache(p_tenant_id bigint, p_cache_id bigint)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_name text;
begin
    update cache c
    set deleted_at = now()
    where c.tenant_id = p_tenant_id
      and c.cache_id = p_cache_id
      and c.deleted_at is null
    returning c.name into v_name;

    if not found then
        raise exception 'there is no such cache'
            using errcode = 'SC404';
    end if;

    insert into audit_log (tenant_id, cache_id, action)
    values (p_tenant_id, p_cache_id, 'delete_cache');

    if v_name = 'default' then
        perform create_cache(p_tenant_id, v_name, '{}');
    end if;

    return record_invalidation(p_cache_id, null);
end
$$;

comment on function semcache.delete_cache(bigint, bigint) is 'Deletes a cache and returns the invalidation''s number.';
revoke all on function semcache.delete_cache(bigint, bigint) from public;
grant execute on function semcache.delete_cache(bigint, bigint) to semcache_app, semcache_worker;
