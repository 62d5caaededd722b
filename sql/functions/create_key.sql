-- Note a new API key by its hash. Replicas forget what they know of keys, since the first key closes the service to others.
-- Caller: `pgsemcache keys create`. Locks: record_invalidation's. Bound: one row. Errors: SC410.

create or replace function semcache.create_key(p_tenant_id bigint, p_key_hash bytea, p_hint text)
returns table (api_key_id bigint, invalidation_id bigint)
language plpgsql
set search_path from current
as $$
begin
    insert into api_key (tenant_id, key_hash, hint)
    values (p_tenant_id, p_key_hash, p_hint)
    returning api_key.api_key_id into api_key_id;

    invalidation_id := record_invalidation(null, null);
    return next;
exception when unique_violation then
    raise exception 'this key was made before, for another tenant, or it was revoked; choose another one' using errcode = 'SC410';
end
$$;

comment on function semcache.create_key(bigint, bytea, text) is 'Notes a new API key by its hash and returns its number and the invalidation''s.';
revoke all on function semcache.create_key(bigint, bytea, text) from public;
grant execute on function semcache.create_key(bigint, bytea, text) to semcache_app;
