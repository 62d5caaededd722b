-- As find_neighbours, for a scope with an approximate index of its own. The index is partial: it holds this scope's
-- vectors only, so no other tenant or scope can thin out the result. Its predicate wants the numbers as literals, and
-- its order the cast to the embedder's length. Iterative scans (set on the connection) go on until enough are alive.
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
        v.vector::halfvec({dimensions}) <#> %(vector)s::halfvec({dimensions}) as distance
    from semcache.embedding v
    where v.embedder_id = {embedder_id}
      and v.scope_id = {scope_id}
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
