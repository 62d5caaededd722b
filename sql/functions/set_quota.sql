-- Set how much all caches of a tenant may hold together; null: no limit.
-- Caller: `pgsemcache quotas set`. Locks: the tenant's row. Bound: one row. Idempotent. False: there is no such tenant.

create or replace function semcache.set_quota(p_tenant text, p_max_entries bigint, p_max_bytes bigint)
returns boolean
language plpgsql
set search_path from current
as $$
begin
    with changed as (
        update tenant t
        set max_entries = p_max_entries,
            max_bytes = p_max_bytes
        where t.name = p_tenant
        returning t.tenant_id
    )
    insert into audit_log (tenant_id, action, detail)
    select c.tenant_id, 'set_quota', jsonb_build_object('max_entries', p_max_entries, 'max_bytes', p_max_bytes)
    from changed c;

    return found;
end
$$;

comment on function semcache.set_quota(text, bigint, bigint) is
    'Sets how much all caches of a tenant may hold together, null being no limit; false where there is no such tenant.';
revoke all on function semcache.set_quota(text, bigint, bigint) from public;
grant execute on function semcache.set_quota(text, bigint, bigint) to semcache_worker;
