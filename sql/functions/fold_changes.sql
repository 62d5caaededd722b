-- Add to cache_size what changed, and let the clocks of limited caches go on.
-- Caller: the worker, before it evicts. Locks: the rows of cache_change, of which new ones come meanwhile, and of cache_size.
-- Bound: the changes since the last call.

create or replace function semcache.fold_changes()
returns void
language plpgsql
set search_path from current
as $$
begin
    with gone as (
        delete from cache_change
        returning cache_id, tenant_id, entries, bytes, stored
    )
    insert into cache_size as z (cache_id, tenant_id, entries, bytes, stored)
    select g.cache_id, g.tenant_id, sum(g.entries), sum(g.bytes), sum(g.stored)
    from gone g
    group by g.cache_id, g.tenant_id
    on conflict (cache_id) do update
    set entries = z.entries + excluded.entries,
        bytes = z.bytes + excluded.bytes,
        stored = z.stored + excluded.stored;

    update cache_size z
    set clock = z.clock + (z.stored - z.clocked) / (k.room * z.half_life),
        clocked = z.stored
    from capacity k
    where k.cache_id = z.cache_id
      and k.room is not null
      and z.clocked < z.stored;
end
$$;

comment on function semcache.fold_changes() is 'Adds what stores and removals changed to cache_size, and lets the clocks of limited caches go on.';
revoke all on function semcache.fold_changes() from public;
grant execute on function semcache.fold_changes() to semcache_worker;
