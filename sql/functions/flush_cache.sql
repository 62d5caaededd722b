-- Make all entries of a cache dead by a new epoch; their rows are removed in the background.
-- Caller: flush of the data API. Locks: the cache's row, then record_invalidation's. Bound: one row. Errors: SC404.

create or replace function semcache.flush_cache(p_tenant_id bigint, p_cache_id bigint)
returns bigint
language plpgsql
set search_path from current
as $$
begin
    update cache c
    set epoch = c.epoch + 1,
        changes = c.changes + 1,
        updated_at = now()
    where c.tenant_id = p_tenant_id
      and c.cache_id = p_cache_id
      and c.deleted_at is null;

    if not found then
        raise exception 'there is no such cache'
            using errcode = 'SC404';
    end if;

    insert into audit_log (tenant_id, cache_id, action)
    values (p_tenant_id, p_cache_id, 'flush_cache');

    return record_invalidation(p_cache_id, null);
end
$$;

comment on function semcache.flush_cache(bigint, bigint) is 'Makes all entries of a cache dead and returns the invalidation''s number.';
revoke all on function semcache.flush_cache(bigint, bigint) from public;
grant execute on function semcache.flush_cache(bigint, bigint) to semcache_app, semcache_worker;
