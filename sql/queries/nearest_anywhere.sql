-- For explain: the nearest entries of a whole cache, whatever their scope and state, with what stands in their way.
-- Reads every vector of the cache; never on the way of a request.
select
    e.entry_id,
    e.prompt,
    e.prompt_verbatim,
    e.attributes,
    e.provenance,
    extract(epoch from now() - e.created_at)::float8 as age,
    extract(epoch from e.expires_at - now())::float8 as ttl,
    e.quarantined_at is not null as quarantined,
    s.scope_id,
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
    -(v.vector <#> %(vector)s) as similarity
from semcache.scope s
join semcache.embedding v on v.scope_id = s.scope_id and v.embedder_id = %(embedder_id)s
join semcache.entry e on e.entry_id = v.entry_id
join semcache.cache c on c.cache_id = e.cache_id
join semcache.model m using (model_id)
join semcache.sampling_config g using (sampling_config_id)
where s.tenant_id = %(tenant_id)s
  and s.cache_id = %(cache_id)s
  and e.epoch = c.epoch
order by v.vector <#> %(vector)s
limit %(limit)s
