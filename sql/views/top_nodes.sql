-- The request graph's nodes: what is asked most, and how central it is. Weights fade by half in a day.
create or replace view semcache.top_nodes
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    n.node_id,
    left(e.prompt, 80) as prompt,
    round(semcache.decayed_count(n.visits)::numeric, 2) as visits_a_day,
    n.seen,
    n.last_at,
    y.popularity,
    y.pagerank,
    y.betweenness,
    y.markov,
    case
        when e.entry_id is null then 'none'
        when e.quarantined_at is not null then 'quarantined'
        when e.epoch < c.epoch or e.expires_at <= now() then 'dead'
        else 'living'
    end as answer
from semcache.node n
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = n.tenant_id
left join semcache.centrality y using (node_id)
left join lateral (
    select x.entry_id, x.prompt, x.epoch, x.expires_at, x.quarantined_at
    from semcache.entry x
    where x.cache_id = n.cache_id
      and x.exact_key = n.exact_key
    order by x.created_at desc
    limit 1
) e on true
where c.deleted_at is null
order by n.visits desc;

comment on view semcache.top_nodes is 'The request graph''s nodes: what is asked most, how central it is, and whether its answer lives.';
comment on column semcache.top_nodes.visits_a_day is 'How often it was asked, each time weighing half after a day.';
comment on column semcache.top_nodes.seen is 'How often it was asked in all.';
comment on column semcache.top_nodes.popularity is 'Share of the cache''s decayed visits; null, as those that follow: not scored yet.';
comment on column semcache.top_nodes.pagerank is 'Share of the visits of a walk over the transitions that restarts where sessions start.';
comment on column semcache.top_nodes.betweenness is 'Share of the likeliest paths that lead through it.';
comment on column semcache.top_nodes.markov is 'Share of the requests expected soon, by what follows in the sessions under way.';
comment on column semcache.top_nodes.answer is 'Whether a stored answer is living, dead (flushed or expired), quarantined, or none.';
grant select on semcache.top_nodes to semcache_app, semcache_worker;
