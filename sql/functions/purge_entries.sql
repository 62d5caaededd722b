-- Remove rows that nobody can be served any more (flushed, expired for an hour, or of a deleted cache), old log rows, and
-- what replicas have forgotten (of that the newest row stays, since it has the highest number) or left when killed.
-- Caller: the worker's task purge, again and again until it returns 0. Only a worker sees all tenants.
-- Locks: entries SKIP LOCKED, so no request waits; of the rest only rows that nothing uses any more.
-- Bound: p_limit entries, p_limit log rows older than p_keep_log, p_limit invalidations.

create or replace function semcache.purge_entries(p_limit integer, p_keep_log interval)
returns integer
language plpgsql
set search_path from current
as $$
declare
    v_tenant record;
    v_removed integer := 0;
    v_log_rows integer;
    v_invalidations integer;
begin
    for v_tenant in
        select d.tenant_id, array_agg(d.entry_id) as ids
        from (
            select e.tenant_id, e.entry_id
            from entry e
            where e.entry_id = any (array(
                select g.entry_id
                from cache c
                cross join lateral (
                    select x.entry_id
                    from entry x
                    where x.cache_id = c.cache_id
                      and x.epoch < case when c.deleted_at is null then c.epoch else c.epoch + 1 end
                    order by x.epoch
                    limit p_limit
                ) g
                union all
                select x.entry_id
                from entry x
                where x.expires_at < now() - interval '1 hour'
                limit p_limit
            ))
            for update skip locked
        ) d
        group by d.tenant_id
    loop
        v_removed := v_removed + remove_entries(v_tenant.tenant_id, v_tenant.ids);
    end loop;

    delete from request_log
    where request_log_id in (
        select r.request_log_id
        from request_log r
        where r.at < now() - p_keep_log
        order by r.request_log_id
        limit p_limit
        for update skip locked
    );
    get diagnostics v_log_rows = row_count;

    delete from invalidation
    where invalidation_id in (
        select i.invalidation_id
        from invalidation i
        where i.at < now() - interval '10 minutes'
          and i.invalidation_id < (select max(n.invalidation_id) from invalidation n)
        order by i.invalidation_id
        limit p_limit
    );
    get diagnostics v_invalidations = row_count;

    delete from job
    where ended_at < now() - interval '7 days';

    delete from evicted g
    using cache c
    where c.cache_id = g.cache_id
      and c.deleted_at is not null;

    delete from lease
    where (name like 'replica:%' or name like 'flight:%')
      and expires_at < now() - interval '1 hour';

    delete from flight_chunk c
    where c.at < now() - interval '1 minute'
      and not exists (select from lease l where l.holder = c.holder and l.expires_at > now());

    return v_removed + v_log_rows + v_invalidations;
end
$$;

comment on function semcache.purge_entries(integer, interval) is
    'Removes a batch of entries that cannot be served any more, one of old log rows and one of old invalidations; returns how many rows went.';
revoke all on function semcache.purge_entries(integer, interval) from public;
grant execute on function semcache.purge_entries(integer, interval) to semcache_worker;
