-- Find or make a tenant with its cache named default.
-- Caller: the service for the tenant default, and `pgsemcache keys create`. Bound: two rows. Idempotent.
-- Sets semcache.tenant_id for the transaction, since row-level security guards the cache's row.

create or replace function semcache.ensure_tenant(p_name text)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_tenant_id bigint;
begin
    insert into tenant (name)
    values (p_name)
    on conflict (name) do nothing;

    select t.tenant_id
    into strict v_tenant_id
    from tenant t
    where t.name = p_name;

    perform set_config('semcache.tenant_id', v_tenant_id::text, true);

    insert into cache (tenant_id, name)
    values (v_tenant_id, 'default')
    on conflict (tenant_id, name) where deleted_at is null do nothing;

    return v_tenant_id;
end
$$;

comment on function semcache.ensure_tenant(text) is 'Finds or makes a tenant, with its cache named default, and returns its number.';
revoke all on function semcache.ensure_tenant(text) from public;
grant execute on function semcache.ensure_tenant(text) to semcache_app;
