-- Choose what to evict by S3-FIFO (J. Yang et al., SOSP 2023): new entries wait in a small queue of a tenth of the cache; who
-- was used more than once there goes on to the main queue, the others leave. In the main queue who was used goes round
-- once more for each use. Who comes back after an eviction begins in the main queue.
-- rank is the place in a queue: the time in seconds, in the main queue 1e12 more.
-- Caller: evict_entries. Locks: the rows of entries and their usage, SKIP LOCKED. Bound: p_limit rows, and it counts the small queue.

create or replace function semcache.evict_fifo(
    p_cache_id bigint,
    p_held bigint,
    p_entries bigint,
    p_bytes bigint,
    p_limit integer
)
returns table (victims uuid[], looked_at bigint)
language plpgsql
set search_path from current
as $$
declare
    v_main constant double precision := 1e12;
    v_now constant double precision := extract(epoch from clock_timestamp());
    v_is_small boolean;
begin
    update entry_usage u
    set rank = extract(epoch from e.created_at)::float8 + case when u.returned then v_main else 0 end
    from entry e
    where u.cache_id = p_cache_id
      and u.rank = '-infinity'
      and e.entry_id = u.entry_id;

    select
        10 * count(*) >= p_held
            or not exists (
                select
                from entry_usage m
                where m.cache_id = p_cache_id
                  and m.rank >= v_main
                  and m.rank < 'infinity'
            )
    into v_is_small
    from entry_usage u
    where u.cache_id = p_cache_id
      and u.rank < v_main;

    return query
    with looked as (
        select
            u.entry_id,
            u.rank,
            u.bytes,
            u.uses,
            case when e.pinned then 3 when v_is_small then u.uses - 1 else u.uses end > 0 as stays,
            e.pinned
        from entry_usage u
        join entry e using (entry_id)
        where u.cache_id = p_cache_id
          and u.rank >= case when v_is_small then 0 else v_main end
          and u.rank < case when v_is_small then v_main else 'infinity' end
        order by u.rank, u.entry_id
        limit p_limit
        for update of e, u skip locked
    ),
    ordered as (
        select
            l.entry_id,
            l.stays,
            l.pinned,
            l.uses,
            row_number() over first_in as place,
            count(*) filter (where not l.stays) over first_in as leaving,
            coalesce(sum(l.bytes) filter (where not l.stays) over before, 0) as bytes_before
        from looked l
        window
            first_in as (order by l.rank, l.entry_id),
            before as (order by l.rank, l.entry_id rows between unbounded preceding and 1 preceding)
    ),
    passed as (
        select o.*
        from ordered o
        where o.leaving - (not o.stays)::int < p_entries
           or o.bytes_before < p_bytes
    ),
    moved as (
        update entry_usage u
        set rank = case when p.pinned then 'infinity' else v_main + v_now + p.place * 1e-6 end,
            uses = case when v_is_small then 0 else p.uses - 1 end
        from passed p
        where u.entry_id = p.entry_id
          and p.stays
    )
    select
        array(select p.entry_id from passed p where not p.stays),
        (select count(*) from looked);
end
$$;

comment on function semcache.evict_fifo(bigint, bigint, bigint, bigint, integer) is
    'Chooses what leaves the queues of S3-FIFO until so many entries and bytes are found, and moves on who stays.';
revoke all on function semcache.evict_fifo(bigint, bigint, bigint, bigint, integer) from public;
grant execute on function semcache.evict_fifo(bigint, bigint, bigint, bigint, integer) to semcache_worker;
