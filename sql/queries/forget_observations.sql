-- Remove a batch of a cache's observations that are too old to learn from; what people said stays.
delete from semcache.observation
where observation_id in (
    select o.observation_id
    from semcache.observation o
    where o.tenant_id = %(tenant_id)s
      and o.cache_id = %(cache_id)s
      and o.at < %(before)s
      and o.source <> 'feedback'
    order by o.at
    limit %(limit)s
)
