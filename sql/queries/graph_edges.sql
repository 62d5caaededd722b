-- The edges of a cache's request graph that were seen often enough to mean something.
select t.from_node, t.to_node, t.weight
from semcache.transition t
where t.cache_id = %(cache_id)s
  and t.seen >= %(support)s
order by t.from_node, t.to_node
