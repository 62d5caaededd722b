-- Living entries of a cache in the order of their making, a page at a time, after the last row of the page before.
select
    e.entry_id,
    e.prompt,
    e.prompt_verbatim,
    e.attributes,
    e.tags,
    e.provenance,
    e.alias_of,
    e.pinned,
    e.quarantined_at,
    e.created_at,
    e.expires_at,
    o.payload::text as payload,
    o.prompt_tokens,
    o.completion_tokens,
    m.name as model,
    coalesce(u.hits, 0) as hits,
    u.last_hit_at
from semcache.entry e
join semcache.output o using (output_id)
join semcache.scope s using (scope_id)
join semcache.model m using (model_id)
left join semcache.entry_usage u using (entry_id)
where e.tenant_id = %(tenant_id)s
  and e.cache_id = %(cache_id)s
  and e.epoch = (
      select c.epoch
      from semcache.cache c
      where c.cache_id = %(cache_id)s
  )
  and (e.expires_at is null or e.expires_at > now())
  and (e.created_at, e.entry_id) > (
      coalesce(%(after_at)s::timestamptz, '-infinity'),
      coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000')
  )
order by e.created_at, e.entry_id
limit %(limit)s
