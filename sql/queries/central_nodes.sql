-- The nodes of a cache's request graph that are most central by one measure, and the answer that serves each, if one does.
select
    n.node_id,
    e.entry_id,
    left(e.prompt, 200) as prompt,
    case
        when e.entry_id is null then 'none'
        when e.quarantined_at is not null then 'quarantined'
        when e.epoch < n.epoch or e.expires_at <= now() then 'dead'
        else 'living'
    end as answer,
    n.score,
    power(2, greatest(n.visits - semcache.decay_clock(now()), -100)) as times_a_day,
    n.seen,
    n.last_at
from (
    select
        n.*,
        c.epoch,
        coalesce(
            case %(measure)s
                when 'popularity' then y.popularity
                when 'pagerank' then y.pagerank
                when 'betweenness' then y.betweenness
                when 'markov' then y.markov
            end,
            0
        ) as score
    from semcache.node n
    join semcache.cache c using (cache_id)
    left join semcache.centrality y using (node_id)
    where n.tenant_id = %(tenant_id)s
      and n.cache_id = %(cache_id)s
    order by score desc, n.visits desc, n.node_id
    limit %(limit)s
) n
left join lateral (
    select x.entry_id, x.prompt, x.epoch, x.expires_at, x.quarantined_at
    from semcache.entry x
    where x.cache_id = n.cache_id
      and x.exact_key = n.exact_key
    order by x.created_at desc
    limit 1
) e on true
order by n.score desc, n.visits desc, n.node_id
