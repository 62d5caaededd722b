-- Remove entries with their vectors and usage, and each output with its last entry.
-- Caller: the other functions that delete; nobody removes rows of entry directly.
-- Locks: the rows, then their outputs, each in the order of ids: of two calls that remove the last two entries of an
-- output the later one sees that it is the last. Bound: the ids given. Idempotent.

create or replace function semcache.remove_entries(p_tenant_id bigint, p_entry_ids uuid[])
returns integer
language plpgsql
set search_path from current
as $$
declare
    v_outputs bigint[];
begin
    perform e.entry_id
    from entry e
    where e.tenant_id = p_tenant_id
      and e.entry_id = any (p_entry_ids)
    order by e.entry_id
    for update;

    with removed as (
        delete from entry_usage u
        where u.tenant_id = p_tenant_id
          and u.entry_id = any (p_entry_ids)
        returning u.cache_id, u.bytes
    )
    insert into cache_change (cache_id, tenant_id, entries, bytes, stored)
    select r.cache_id, p_tenant_id, -count(*), -sum(r.bytes), 0
    from removed r
    group by r.cache_id;

    with removed as (
        delete from entry e
        where e.tenant_id = p_tenant_id
          and e.entry_id = any (p_entry_ids)
        returning e.output_id
    )
    select array_agg(r.output_id)
    into v_outputs
    from removed r;

    perform o.output_id
    from output o
    where o.tenant_id = p_tenant_id
      and o.output_id = any (v_outputs)
    order by o.output_id
    for update;

    delete from output o
    where o.tenant_id = p_tenant_id
      and o.output_id = any (v_outputs)
      and not exists (
          select
          from entry e
          where e.output_id = o.output_id
      );

    return coalesce(cardinality(v_outputs), 0);
end
$$;

comment on function semcache.remove_entries(bigint, uuid[]) is
    'Removes entries with vectors and usage, and each output with its last entry; returns how many entries went.';
revoke all on function semcache.remove_entries(bigint, uuid[]) from public;
grant execute on function semcache.remove_entries(bigint, uuid[]) to semcache_app, semcache_worker;
