-- Entries in the order of their making after this one, and whether this embedder's vector is missing: they have one of
-- another embedder only.
select
    e.entry_id,
    e.created_at,
    e.scope_id,
    e.prompt,
    e.prompt_verbatim,
    h.missing
from semcache.entry e
cross join lateral (
    select bool_or(v.embedder_id = %(embedder_id)s) is false as missing
    from semcache.embedding v
    where v.entry_id = e.entry_id
) h
where e.tenant_id = %(tenant_id)s
  and e.cache_id = %(cache_id)s
  and e.epoch = (
      select c.epoch
      from semcache.cache c
      where c.cache_id = %(cache_id)s
  )
  and (e.created_at, e.entry_id) > (
      coalesce(%(after_at)s::timestamptz, '-infinity'),
      coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000')
  )
order by e.created_at, e.entry_id
limit %(limit)s
