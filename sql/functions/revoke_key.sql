-- Revoke an API key.
-- Caller: `pgsemcache keys revoke`. Locks: the key's row, then record_invalidation's. Bound: one row. Idempotent.
-- Returns null when there is no such key or it was revoked before.

create or replace function semcache.revoke_key(p_api_key_id bigint)
returns bigint
language plpgsql
set search_path from current
as $$
begin
    update api_key k
    set revoked_at = now()
    where k.api_key_id = p_api_key_id
      and k.revoked_at is null;

    return case when found then record_invalidation(null, null) end;
end
$$;

comment on function semcache.revoke_key(bigint) is 'Revokes an API key and returns the invalidation''s number; null when there was nothing to revoke.';
revoke all on function semcache.revoke_key(bigint) from public;
grant execute on function semcache.revoke_key(bigint) to semcache_app;
