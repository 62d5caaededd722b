-- The nearest living entries of a small scope, by an exact scan of its vectors: recall is 1.
-- Distances are computed once, in the narrow table; entries are looked up nearest first, until enough are alive.
select
    e.entry_id,
    e.prompt,
    e.prompt_verbatim,
    e.attributes,
    e.tags,
    e.provenance,
    e.created_at,
    extract(epoch from now() - e.created_at)::float8 as age,
    extract(epoch from e.expires_at - now())::float8 as ttl,
    o.payload::text as payload,
    o.prompt_tokens,
    o.completion_tokens,
    -near.distance as similarity
from (
    select
        v.entry_id,
        v.vector <#> %(vector)s as distance
    from semcache.embedding v
    where v.embedder_id = %(embedder_id)s
      and v.scope_id = %(scope_id)s
      and v.tenant_id = %(tenant_id)s
    order by distance
) near
join semcache.entry e using (entry_id)
join semcache.output o using (output_id)
join semcache.cache c using (cache_id)
where e.tenant_id = %(tenant_id)s
  and e.attributes @> %(attributes)s
  and e.epoch = c.epoch
  and c.deleted_at is null
  and e.quarantined_at is null
  and (e.expires_at is null or e.expires_at > now())
  and (%(born_after)s::timestamptz is null or e.created_at > %(born_after)s)
order by near.distance
limit %(neighbours)s
