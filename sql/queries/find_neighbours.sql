-- The nearest living entries of a small scope, by an exact scan of its vectors: recall is 1.
-- Distances are computed once, in the narrow table; entries are looked up nearest first, until enough are alive. The
-- fences (offset 0) keep that order of work, whatever the planner thinks of the conditions on entries.
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
    o.cost_ms,
    o.answer_key,
    f.slope,
    f.middle,
    f.variance,
    f.n,
    f.confirmed,
    f.refuted,
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
cross join lateral (
    select x.*
    from semcache.entry x
    where x.entry_id = near.entry_id
      and x.tenant_id = %(tenant_id)s
      and x.attributes @> %(attributes)s
      and x.quarantined_at is null
      and (%(client_answers)s or x.provenance <> 'client')
      and (x.expires_at is null or x.expires_at > now() + make_interval(secs => %(min_ttl)s))
      and (%(max_age)s::float8 is null or x.created_at > now() - make_interval(secs => %(max_age)s))
      and x.epoch = (
          select c.epoch
          from semcache.cache c
          where c.tenant_id = %(tenant_id)s
            and c.cache_id = %(cache_id)s
            and c.deleted_at is null
      )
    offset 0
) e
cross join lateral (
    select
        y.payload,
        y.prompt_tokens,
        y.completion_tokens,
        y.cost_ms,
        y.answer_key
    from semcache.output y
    where y.output_id = e.output_id
    offset 0
) o
left join lateral (
    select
        z.slope,
        z.middle,
        z.variance,
        z.n,
        z.confirmed,
        z.refuted
    from semcache.entry_fit z
    where z.entry_id = near.entry_id
      and z.embedder_id = %(embedder_id)s
      and z.tenant_id = %(tenant_id)s
    offset 0
) f on true
order by near.distance
limit %(neighbours)s
