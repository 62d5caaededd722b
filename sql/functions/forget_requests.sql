-- Forget the texts of the requests whose entries are about to be deleted by hand: what a user wants gone is not asked again.
-- Caller: delete_entry and delete_entries, before they remove the entries. Locks: the rows. Bound: the ids given.

create or replace function semcache.forget_requests(p_tenant_id bigint, p_entry_ids uuid[])
returns void
language plpgsql
set search_path from current
as $$
begin
    delete from request_body b
    using entry e
    join node n
        on n.cache_id = e.cache_id
        and n.exact_key = e.exact_key
    where b.node_id = n.node_id
      and b.tenant_id = p_tenant_id
      and e.tenant_id = p_tenant_id
      and e.entry_id = any (p_entry_ids);
end
$$;

comment on function semcache.forget_requests(bigint, uuid[]) is
    'Forgets the kept requests of these entries, so that they are not asked again.';
revoke all on function semcache.forget_requests(bigint, uuid[]) from public;
grant execute on function semcache.forget_requests(bigint, uuid[]) to semcache_app, semcache_worker;
