-- One entry with everything that is known of it, also when it is expired or quarantined; not when it was flushed.
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
    u.last_hit_at,
    json_build_object(
        'model', json_strip_nulls(json_build_object(
            'name', m.name,
            'revision', m.revision,
            'tokenizer', m.tokenizer,
            'chatTemplate', m.chat_template,
            'dtype', m.dtype,
            'quantization', m.quantization,
            'kvCacheDtype', m.kv_cache_dtype,
            'engineVersion', m.engine_version
        )),
        'sampling', g.config,
        'parts', s.parts
    ) as scope
from semcache.entry e
join semcache.output o using (output_id)
join semcache.scope s using (scope_id)
join semcache.model m using (model_id)
join semcache.sampling_config g using (sampling_config_id)
left join semcache.entry_usage u using (entry_id)
where e.tenant_id = %(tenant_id)s
  and e.entry_id = %(entry_id)s
  and e.epoch = (
      select c.epoch
      from semcache.cache c
      where c.cache_id = e.cache_id
        and c.cache_id = %(cache_id)s
  )
