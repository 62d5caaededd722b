-- How full each cache is, by its own limits and its tenant's, and what was evicted from it. A tenant that is over its limit
-- gives way in its largest cache of which not all is pinned.
create or replace view semcache.capacity
with (security_invoker = true)
as
select
    l.tenant,
    l.cache,
    l.entries,
    l.max_entries,
    l.bytes,
    l.max_bytes,
    greatest(100.0 * l.entries / l.max_entries, 100.0 * l.bytes / l.max_bytes)::float8 as full_percent,
    coalesce(l.policy ->> 'eviction', 'lfu-decay-cost') as eviction,
    l.half_life,
    l.evicted,
    pg_size_pretty(l.evicted_bytes) as evicted_size,
    l.evicted_at,
    case
        when num_nonnulls(l.max_entries, l.max_bytes) > 0
        then greatest(least(l.max_entries, l.max_bytes * l.entries / nullif(l.bytes, 0)), 1)::float8
    end as room,
    l.cache_id
from (
    select
        t.name as tenant,
        z.*,
        least(
            (z.policy ->> 'maxEntries')::bigint,
            case
                when t.max_entries is not null
                    and row_number() over (partition by z.tenant_id order by v.gives nulls last, z.entries desc, z.cache_id) = 1
                then greatest(t.max_entries - sum(z.entries) over (partition by z.tenant_id) + z.entries, 1)
            end
        ) as max_entries,
        least(
            (z.policy ->> 'maxBytes')::bigint,
            case
                when t.max_bytes is not null
                    and row_number() over (partition by z.tenant_id order by v.gives nulls last, z.bytes desc, z.cache_id) = 1
                then greatest(t.max_bytes - sum(z.bytes) over (partition by z.tenant_id) + z.bytes, 1)
            end
        ) as max_bytes
    from (
        select
            c.cache_id,
            c.tenant_id,
            c.name as cache,
            c.policy,
            coalesce(s.entries, 0) as entries,
            coalesce(s.bytes, 0) as bytes,
            s.half_life,
            coalesce(s.evicted, 0) as evicted,
            coalesce(s.evicted_bytes, 0) as evicted_bytes,
            s.evicted_at
        from semcache.cache c
        left join semcache.cache_size s using (cache_id)
        where c.deleted_at is null
    ) z
    join semcache.tenant t using (tenant_id)
    left join lateral (
        select true as gives
        from semcache.entry_usage u
        where num_nonnulls(t.max_entries, t.max_bytes) > 0
          and u.cache_id = z.cache_id
          and u.rank < 'infinity'
        limit 1
    ) v on true
) l
order by full_percent desc nulls last, l.tenant, l.cache;

comment on view semcache.capacity is 'How full each cache is, by its own limits and its tenant''s, and what was evicted from it.';
comment on column semcache.capacity.entries is 'Entries that it holds, dead ones included.';
comment on column semcache.capacity.max_entries is 'Most entries, by its policy or what its tenant''s quota leaves it; null: no limit.';
comment on column semcache.capacity.bytes is 'What they take: answers, prompts, vectors, and a kilobyte each for rows and indexes.';
comment on column semcache.capacity.max_bytes is 'Most bytes, likewise; null: no limit.';
comment on column semcache.capacity.full_percent is 'Entries or bytes in percent of their limit, the fuller of the two: above 100 it is evicted from. Null: no limit.';
comment on column semcache.capacity.half_life is 'In how many turnovers of the cache a use loses half of its worth.';
comment on column semcache.capacity.evicted is 'How many entries were ever evicted.';
comment on column semcache.capacity.evicted_size is 'What they took.';
comment on column semcache.capacity.room is 'Entries that fit, at their mean size; null: no limit.';
grant select on semcache.capacity to semcache_app, semcache_worker;
