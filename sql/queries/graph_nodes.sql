-- The nodes of a cache's request graph, with the sessions that are at each now: those whose last request, within the gap,
-- it was.
select n.node_id, n.visits, n.starts, coalesce(a.sessions, 0) as sessions
from semcache.node n
left join (
    select m.node_id, count(*) as sessions
    from (
        select distinct on (l.session) l.request_key, e.exact_key
        from semcache.request_log l
        left join semcache.entry e using (entry_id)
        where l.cache_id = %(cache_id)s
          and l.at > now() - %(gap)s::interval
          and l.session is not null
        order by l.session, l.at desc, l.request_log_id desc
    ) s
    join semcache.node m
        on m.cache_id = %(cache_id)s
        and (m.exact_key = s.exact_key or (s.exact_key is null and m.request_key = s.request_key))
    group by m.node_id
) a using (node_id)
where n.cache_id = %(cache_id)s
order by n.node_id
