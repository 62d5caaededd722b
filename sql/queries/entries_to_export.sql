-- Entries that may be served, with all that makes their identity, in the order of their making after this one.
select
    e.entry_id,
    e.created_at,
    e.expires_at,
    e.prompt,
    e.prompt_verbatim,
    e.attributes,
    e.tags,
    e.exact_key,
    s.scope_key,
    s.parts,
    g.config::text as sampling,
    m.name,
    m.revision,
    m.tokenizer,
    m.chat_template,
    m.dtype,
    m.quantization,
    m.kv_cache_dtype,
    m.engine_version,
    o.payload::text as payload,
    o.cost_ms,
    (
        select count(*)
        from semcache.entry x
        where x.cache_id = e.cache_id
          and x.exact_key = e.exact_key
          and x.attributes_key = e.attributes_key
          and x.epoch = e.epoch
          and x.quarantined_at is null
          and (x.expires_at is null or x.expires_at > now())
    ) as variants,
    exists (
        select
        from semcache.embedding v
        where v.entry_id = e.entry_id
    ) as semantic
from semcache.entry e
join semcache.output o using (output_id)
join semcache.scope s using (scope_id)
join semcache.model m using (model_id)
join semcache.sampling_config g using (sampling_config_id)
where e.tenant_id = %(tenant_id)s
  and e.cache_id = %(cache_id)s
  and e.epoch = (
      select c.epoch
      from semcache.cache c
      where c.cache_id = %(cache_id)s
  )
  and e.quarantined_at is null
  and (e.expires_at is null or e.expires_at > now())
  and (e.created_at, e.entry_id) > (
      coalesce(%(after_at)s::timestamptz, '-infinity'),
      coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000')
  )
order by e.created_at, e.entry_id
limit %(limit)s
