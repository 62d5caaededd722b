-- Choose what to evict by lfu-decay-cost or lru: the entries of the lowest rank, exactly. rank is what an entry stood at
-- when it was last looked at, and it has not sunk since; so of those that the index gives first, whoever still stands
-- no higher than the highest rank among them comes before all others. The rest are ranked anew.
-- Caller: evict_entries. Locks: the rows of entries and their usage, SKIP LOCKED. Bound: p_limit rows.

create or replace function semcache.evict_lowest(
    p_cache_id bigint,
    p_eviction text,
    p_entries bigint,
    p_bytes bigint,
    p_limit integer
)
returns table (victims uuid[], looked_at bigint)
language plpgsql
set search_path from current
as $$
begin
    return query
    with looked as (
        select
            u.entry_id,
            u.bytes,
            u.rank as before,
            case
                when e.pinned then 'infinity'
                when p_eviction = 'lru' then extract(epoch from greatest(u.last_hit_at, e.created_at))::float8
                else u.score + u.weight
            end as rank
        from entry_usage u
        join entry e using (entry_id)
        where u.cache_id = p_cache_id
          and u.rank < 'infinity'
        order by u.rank, u.entry_id
        limit p_limit
        for update of e, u skip locked
    ),
    ordered as (
        select
            l.entry_id,
            row_number() over lowest as place,
            sum(l.bytes) over lowest - l.bytes as bytes_before
        from looked l
        where l.rank <= (select max(x.before) from looked x)
        window lowest as (order by l.rank, l.entry_id)
    ),
    chosen as (
        select o.entry_id
        from ordered o
        where o.place <= p_entries
           or o.bytes_before < p_bytes
    ),
    ranked as (
        update entry_usage u
        set rank = l.rank
        from looked l
        where u.entry_id = l.entry_id
          and l.rank <> l.before
          and l.entry_id not in (select c.entry_id from chosen c)
    )
    select
        array(select c.entry_id from chosen c),
        (select count(*) from looked);
end
$$;

comment on function semcache.evict_lowest(bigint, text, bigint, bigint, integer) is
    'Chooses the entries of the lowest rank until so many entries and bytes are found, and ranks anew what it looked at.';
revoke all on function semcache.evict_lowest(bigint, text, bigint, bigint, integer) from public;
grant execute on function semcache.evict_lowest(bigint, text, bigint, bigint, integer) to semcache_worker;
