-- Evict a batch from a cache that is over its limit: first what is dead (flushed or expired), then by the
-- cache's policy, down to p_low of the limit. What was evicted was right, so nobody waits until the replicas have followed; they
-- forget it all the same, or an answer that is stored anew could be hidden by the older one.
-- Caller: the worker, again and again until it returns false. Locks: SKIP LOCKED, so no request waits; then
-- record_invalidations'. Bound: p_limit entries of one cache. Not flushed at commit: what a crash forgets is evicted again.

create or replace function semcache.evict_entries(p_cache_id bigint, p_limit integer, p_low double precision)
returns boolean
language plpgsql
set search_path from current
as $$
declare
    v_over record;
    v_entries bigint;
    v_bytes bigint;
    v_dead uuid[];
    v_victims uuid[];
    v_looked_at bigint;
    v_keys bytea[];
begin
    perform set_config('synchronous_commit', 'off', true);
    perform fold_changes();

    select z.tenant_id, k.eviction, k.entries, k.bytes, k.max_entries, k.max_bytes, k.room, z.stored, z.ranked_by
    into v_over
    from capacity k
    join cache_size z using (cache_id)
    where k.cache_id = p_cache_id
      and k.full_percent > 100;

    if not found then
        return false;
    end if;

    v_entries := coalesce(v_over.entries - floor(v_over.max_entries * p_low), 0);
    v_bytes := coalesce(v_over.bytes - floor(v_over.max_bytes * p_low), 0);

    if v_over.ranked_by is distinct from v_over.eviction then
        update entry_usage
        set rank = '-infinity'
        where cache_id = p_cache_id
          and rank > '-infinity';

        update cache_size
        set ranked_by = v_over.eviction
        where cache_id = p_cache_id;
    end if;

    v_dead := array(
        select e.entry_id
        from entry e
        where e.entry_id = any (array(
            (
                select x.entry_id
                from cache c
                join entry x on x.cache_id = c.cache_id and x.epoch < c.epoch
                where c.cache_id = p_cache_id
                order by x.epoch
                limit p_limit
            )
            union all
            (
                select x.entry_id
                from (
                    select y.entry_id, y.cache_id
                    from entry y
                    where y.expires_at < now()
                    order by y.expires_at
                    limit 10 * p_limit
                ) x
                where x.cache_id = p_cache_id
            )
        ))
        limit p_limit
        for update skip locked
    );

    if cardinality(v_dead) > 0 then
        v_victims := v_dead;
    elsif v_over.eviction = 's3-fifo' then
        select f.victims, f.looked_at
        into v_victims, v_looked_at
        from evict_fifo(p_cache_id, v_over.entries, v_entries, v_bytes, p_limit) f;
    else
        select f.victims, f.looked_at
        into v_victims, v_looked_at
        from evict_lowest(p_cache_id, v_over.eviction, v_entries, v_bytes, p_limit) f;
    end if;

    if cardinality(v_victims) = 0 then
        return v_looked_at > 0;
    end if;

    if cardinality(v_dead) = 0 then
        insert into evicted (cache_id, exact_key, tenant_id, score, tick)
        select distinct on (e.exact_key) e.cache_id, e.exact_key, e.tenant_id, u.score, v_over.stored
        from entry e
        join entry_usage u using (entry_id)
        where e.entry_id = any (v_victims)
        order by e.exact_key, u.score desc
        on conflict (cache_id, exact_key) do update
        set score = excluded.score,
            tick = excluded.tick;
    end if;

    delete from evicted g
    where g.cache_id = p_cache_id
      and g.tick < v_over.stored - 4 * v_over.room;

    update cache_size z
    set evicted = z.evicted + cardinality(v_victims),
        evicted_bytes = z.evicted_bytes + (select sum(u.bytes) from entry_usage u where u.entry_id = any (v_victims)),
        evicted_at = now()
    where z.cache_id = p_cache_id;

    v_keys := array(
        select e.exact_key
        from entry e
        where e.entry_id = any (v_victims)
    );
    perform remove_entries(v_over.tenant_id, v_victims);
    perform record_invalidations(p_cache_id, v_keys);
    return true;
end
$$;

comment on function semcache.evict_entries(bigint, integer, double precision) is
    'Evicts a batch from a cache that is over its limit; false when there is no more to evict.';
revoke all on function semcache.evict_entries(bigint, integer, double precision) from public;
grant execute on function semcache.evict_entries(bigint, integer, double precision) to semcache_worker;
