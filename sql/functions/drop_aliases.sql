-- Remove the aliases of entries: what ends, replaces or changes an answer must not leave it under another request. No
-- replica remembers an alias, so none has to forget it.
-- Caller: the functions that do so, before their own step. Locks: as remove_entries. Bound: the aliases.

create or replace function semcache.drop_aliases(p_tenant_id bigint, p_entry_ids uuid[])
returns void
language plpgsql
set search_path from current
as $$
begin
    perform remove_entries(
        p_tenant_id,
        array(
            select e.entry_id
            from entry e
            where e.tenant_id = p_tenant_id
              and e.alias_of = any (p_entry_ids)
        )
    );
end
$$;

comment on function semcache.drop_aliases(bigint, uuid[]) is
    'Removes the aliases of entries whose answer ends, is replaced or changes.';
revoke all on function semcache.drop_aliases(bigint, uuid[]) from public;
grant execute on function semcache.drop_aliases(bigint, uuid[]) to semcache_app, semcache_worker;
