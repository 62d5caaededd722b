-- Delete one entry with its aliases.
-- Caller: DELETE of the data API. Locks: the row, then record_invalidation's. Bound: one entry. Errors: SC405 when there is none, or it was flushed.

create or replace function semcache.delete_entry(p_tenant_id bigint, p_cache_id bigint, p_entry_id uuid)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_exact_key bytea;
begin
    select e.exact_key
    into v_exact_key
    from entry e
    where e.tenant_id = p_tenant_id
      and e.entry_id = p_entry_id
      and e.epoch = (
          select c.epoch
          from cache c
          where c.cache_id = e.cache_id
            and c.cache_id = p_cache_id
      );

    if not found then
        raise exception 'there is no such entry'
            using errcode = 'SC405';
    end if;

    perform forget_requests(p_tenant_id, array[p_entry_id]);
    perform drop_aliases(p_tenant_id, array[p_entry_id]);
    perform remove_entries(p_tenant_id, array[p_entry_id]);

    insert into audit_log (tenant_id, cache_id, action, detail)
    values (p_tenant_id, p_cache_id, 'delete_entry', jsonb_build_object('entry_id', p_entry_id));

    return record_invalidation(p_cache_id, v_exact_key);
end
$$;

comment on function semcache.delete_entry(bigint, bigint, uuid) is 'Deletes one entry with its aliases and returns the invalidation''s number.';
revoke all on function semcache.delete_entry(bigint, bigint, uuid) from public;
grant execute on function semcache.delete_entry(bigint, bigint, uuid) to semcache_app, semcache_worker;
