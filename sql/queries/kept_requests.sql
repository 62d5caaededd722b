-- The requests that a cache keeps to be asked again, the most central by one measure first; where `answered`, those whose answer
-- lives and is not pinned.
select b.node_id
from semcache.request_body b
join semcache.cache c using (cache_id)
join semcache.node n using (node_id)
left join semcache.centrality y using (node_id)
where b.tenant_id = %(tenant_id)s
  and b.cache_id = %(cache_id)s
  and (
      not %(answered)s
      or exists (
          select
          from semcache.entry e
          where e.cache_id = b.cache_id
            and e.exact_key = n.exact_key
            and e.epoch = c.epoch
            and e.quarantined_at is null
            and not e.pinned
            and (e.expires_at is null or e.expires_at > now())
      )
  )
order by (to_jsonb(y) ->> %(measure)s)::float8 desc nulls last, n.visits desc, b.node_id
