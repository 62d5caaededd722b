-- The edges of a cache's request graph between some of its nodes, the likeliest first.
select
    t.from_node,
    t.to_node,
    least(1, power(2, greatest(t.weight - f.visits, -100))) as share,
    power(2, greatest(t.weight - semcache.decay_clock(now()), -100)) as times_a_day,
    t.seen
from semcache.transition t
join semcache.node f on f.node_id = t.from_node
where t.tenant_id = %(tenant_id)s
  and t.cache_id = %(cache_id)s
  and t.from_node = any(%(nodes)s)
  and t.to_node = any(%(nodes)s)
order by t.weight desc, t.from_node, t.to_node
