-- As list_newest_entries, those that are pinned or those that are quarantined.
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
  and (e.pinned or e.quarantined_at is not null)
  and case %(listing)s when 'pinned' then e.pinned else e.quarantined_at is not null end
  and (e.created_at, e.entry_id) < (
      coalesce(%(after_at)s::timestamptz, 'infinity'),
      coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  )
order by e.created_at desc, e.entry_id desc
limit %(limit)s
