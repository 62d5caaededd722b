-- The request graph's edges: what follows what in a session, and how often of all that followed.
create or replace view semcache.top_edges
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    left(a.prompt, 60) as prompt,
    left(b.prompt, 60) as next_prompt,
    round(100 * power(2, least(greatest(x.weight - f.visits, -100), 0))::numeric, 1) as percent,
    round(semcache.decayed_count(x.weight)::numeric, 2) as times_a_day,
    x.seen,
    x.last_at,
    x.from_node,
    x.to_node
from semcache.transition x
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = x.tenant_id
join semcache.node f on f.node_id = x.from_node
join semcache.node g on g.node_id = x.to_node
left join lateral (
    select e.prompt
    from semcache.entry e
    where e.cache_id = f.cache_id
      and e.exact_key = f.exact_key
    limit 1
) a on true
left join lateral (
    select e.prompt
    from semcache.entry e
    where e.cache_id = g.cache_id
      and e.exact_key = g.exact_key
    limit 1
) b on true
where c.deleted_at is null
order by x.weight desc;

comment on view semcache.top_edges is 'The request graph''s edges: what follows what in a session, and in how many of a hundred visits.';
comment on column semcache.top_edges.percent is 'Of the visits of the first, those that the next one followed, each weighing half after a day.';
comment on column semcache.top_edges.times_a_day is 'How often it was seen, each time weighing half after a day.';
comment on column semcache.top_edges.seen is 'How often in all.';
grant select on semcache.top_edges to semcache_app, semcache_worker;
