-- Change the policy of a cache by a JSON Merge Patch: a null value goes back to the default.
-- Caller: PATCH of the data API. Locks: the cache's row, then record_invalidation's. Bound: one row. Errors: SC404.

create or replace function semcache.change_policy(p_tenant_id bigint, p_cache_id bigint, p_policy jsonb)
returns bigint
language plpgsql
set search_path from current
as $$
begin
    update cache c
    set policy = merge_patch(c.policy, p_policy),
        changes = c.changes + 1,
        updated_at = now()
    where c.tenant_id = p_tenant_id
      and c.cache_id = p_cache_id
      and c.deleted_at is null;

    if not found then
        raise exception 'there is no such cache'
            using errcode = 'SC404';
    end if;

    insert into audit_log (tenant_id, cache_id, action, detail)
    values (p_tenant_id, p_cache_id, 'change_policy', jsonb_build_object('policy', p_policy));

    return record_invalidation(p_cache_id, null);
end
$$;

comment on function semcache.change_policy(bigint, bigint, jsonb) is
    'Merges keys into a cache''s policy and returns the invalidation''s number.';
revoke all on function semcache.change_policy(bigint, bigint, jsonb) from public;
grant execute on function semcache.change_policy(bigint, bigint, jsonb) to semcache_app, semcache_worker;
