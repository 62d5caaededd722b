-- Add the next rows of the request log to the request graph: each is a visit of its node, and a transition from the
-- request before it in the session, or the start of one. Rows that one output served are one node. A row that comes
-- late, between two that were added, brings both its transitions; the one that it splits stays. Hits of prefetched
-- answers are counted on the way.
-- Caller: the worker's task request_graph, again and again until it returns 0; p_head is what log_head() gave.
-- Locks: the reader's row, so that no row is added twice; then nodes, in the order of caches and keys, edges, prefetches.
-- Bound: p_limit log rows. p_gap: the longest time between two requests of which one leads to the other.

create or replace function semcache.fold_requests(p_head bigint, p_limit integer, p_gap interval)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_from bigint;
    v_to bigint;
begin
    select r.position
    into strict v_from
    from log_reader r
    where r.name = 'request_graph'
    for update;

    v_to := least(p_head, v_from + p_limit);

    if v_to <= v_from then
        return 0;
    end if;

    with fresh as materialized (
        select r.request_log_id, r.at, r.cache_id, r.session
        from request_log r
        where r.request_log_id > v_from
          and r.request_log_id <= v_to
          and r.outcome <> 'bypass'
          and (r.request_key is not null or r.entry_id is not null)
    ),
    followed as materialized (
        select f.request_log_id as after_id, b.request_log_id as before_id
        from fresh f
        left join lateral (
            select l.request_log_id
            from request_log l
            where l.cache_id = f.cache_id
              and l.session = f.session
              and l.at >= f.at - p_gap
              and (l.at, l.request_log_id) < (f.at, f.request_log_id)
              and l.request_log_id <= v_to
              and l.outcome <> 'bypass'
              and (l.request_key is not null or l.entry_id is not null)
            order by l.at desc, l.request_log_id desc
            limit 1
        ) b on true
        where f.session is not null
    ),
    steps as materialized (
        select f.before_id, f.after_id
        from followed f
        where f.before_id is not null
        union all
        select f.request_log_id, a.request_log_id
        from fresh f
        cross join lateral (
            select l.request_log_id
            from request_log l
            where l.cache_id = f.cache_id
              and l.session = f.session
              and l.at <= f.at + p_gap
              and (l.at, l.request_log_id) > (f.at, f.request_log_id)
              and l.request_log_id <= v_to
              and l.outcome <> 'bypass'
              and (l.request_key is not null or l.entry_id is not null)
            order by l.at, l.request_log_id
            limit 1
        ) a
        where f.session is not null
          and a.request_log_id <= v_from
    ),
    involved as (
        select f.request_log_id from fresh f
        union
        select s.before_id from steps s
        union
        select s.after_id from steps s
    ),
    served as (
        select
            r.request_log_id, r.tenant_id, r.cache_id, r.at, r.request_key, o.exact_key,
            decay_clock(r.at) as weight,
            r.outcome <> 'semantic_hit'
                and not (r.outcome = 'shadow' and r.reason = 'accepted')
                and o.entry_id = r.entry_id as own
        from involved i
        join request_log r using (request_log_id)
        left join entry e on e.entry_id = r.entry_id
        left join lateral (
            select x.entry_id, x.exact_key
            from entry x
            where x.output_id = e.output_id
            order by x.created_at, x.entry_id
            limit 1
        ) o on true
    ),
    asked as materialized (
        select
            s.request_log_id, s.tenant_id, s.cache_id, s.at, s.weight, s.exact_key,
            max(s.weight) over () as latest,
            case
                when s.exact_key is null then s.request_key
                else coalesce(
                    (
                        select n.request_key
                        from node n
                        where n.cache_id = s.cache_id
                          and n.exact_key = s.exact_key
                        order by n.node_id
                        limit 1
                    ),
                    first_value(case when s.own then s.request_key else s.exact_key end)
                        over (partition by s.cache_id, s.exact_key order by s.own desc)
                )
            end as request_key
        from served s
    ),
    nodes as (
        insert into node (tenant_id, cache_id, request_key, exact_key, visits, starts, seen, last_at)
        select
            a.tenant_id, a.cache_id, a.request_key,
            (array_agg(a.exact_key order by a.at desc) filter (where a.exact_key is not null))[1],
            a.latest + ln(sum(power(2, greatest(a.weight - a.latest, -1000)))) / ln(2),
            coalesce(
                a.latest + ln(
                    sum(power(2, greatest(a.weight - a.latest, -1000)))
                        filter (where b.after_id is not null and b.before_id is null)
                ) / ln(2),
                '-infinity'
            ),
            count(*),
            max(a.at)
        from asked a
        join fresh f using (request_log_id)
        left join followed b on b.after_id = a.request_log_id
        where a.request_key is not null
        group by a.tenant_id, a.cache_id, a.request_key, a.latest
        order by a.cache_id, a.request_key
        on conflict (cache_id, request_key) do update
        set exact_key = coalesce(excluded.exact_key, node.exact_key),
            visits = add_decayed(node.visits, excluded.visits),
            starts = case
                when excluded.starts = '-infinity' then node.starts
                else add_decayed(node.starts, excluded.starts)
            end,
            seen = node.seen + excluded.seen,
            last_at = greatest(node.last_at, excluded.last_at)
        returning node.node_id, node.cache_id, node.request_key
    ),
    known as (
        select n.node_id, n.cache_id, n.request_key
        from nodes n
        union
        select n.node_id, n.cache_id, n.request_key
        from node n
        join asked a using (cache_id, request_key)
    ),
    edges as (
        insert into transition (from_node, to_node, tenant_id, cache_id, weight, seen, last_at)
        select
            b.node_id, a.node_id, later.tenant_id, later.cache_id,
            later.latest + ln(sum(power(2, greatest(later.weight - later.latest, -1000)))) / ln(2),
            count(*),
            max(later.at)
        from steps s
        join asked earlier on earlier.request_log_id = s.before_id
        join asked later on later.request_log_id = s.after_id
        join known b on b.cache_id = earlier.cache_id and b.request_key = earlier.request_key
        join known a on a.cache_id = later.cache_id and a.request_key = later.request_key
        where a.node_id <> b.node_id
        group by b.node_id, a.node_id, later.tenant_id, later.cache_id, later.latest
        on conflict (from_node, to_node) do update
        set weight = add_decayed(transition.weight, excluded.weight),
            seen = transition.seen + excluded.seen,
            last_at = greatest(transition.last_at, excluded.last_at)
    ),
    used as (
        update prefetch p
        set hits = p.hits + h.hits,
            first_hit_at = least(p.first_hit_at, h.first_at)
        from (
            select r.entry_id, count(*) as hits, min(r.at) as first_at
            from fresh f
            join request_log r using (request_log_id)
            where r.outcome in ('hit', 'semantic_hit', 'stale')
            group by r.entry_id
        ) h
        where p.entry_id = h.entry_id
    )
    insert into request_graph (cache_id, tenant_id, began_at, grown_at)
    select a.cache_id, a.tenant_id, min(a.at), clock_timestamp()
    from asked a
    join fresh f using (request_log_id)
    group by a.cache_id, a.tenant_id
    on conflict (cache_id) do update
    set began_at = least(request_graph.began_at, excluded.began_at),
        grown_at = excluded.grown_at;

    update log_reader
    set position = v_to
    where name = 'request_graph';

    return v_to - v_from;
end
$$;

comment on function semcache.fold_requests(bigint, integer, interval) is
    'Adds the next rows of the request log to the request graph; returns how many numbers of the log it went on.';
revoke all on function semcache.fold_requests(bigint, integer, interval) from public;
grant execute on function semcache.fold_requests(bigint, integer, interval) to semcache_worker;
