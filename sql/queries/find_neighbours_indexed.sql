-- As find_neighbours, for a scope with an approximate index of its own. The index is partial: it holds this scope's
-- vectors only, so no other tenant or scope can thin out the result. Its predicate wants the numbers as literals,
-- its order the cast to the embedder's length, and the limit is a literal so that a plan made for any values, which is
-- kept and saves planning, knows how little is wanted. Whether an entry is alive is asked row by row, nearest first, in a
-- scalar subquery, which no planner turns into a join; iterative scans (set on the connection) go on until enough are.
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
        v.vector::halfvec({dimensions}) <#> %(vector)s::halfvec({dimensions}) as distance
    from semcache.embedding v
    where v.embedder_id = {embedder_id}
      and v.scope_id = {scope_id}
      and v.tenant_id = %(tenant_id)s
      and (
          select true
          from semcache.entry x
          where x.entry_id = v.entry_id
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
      )
    order by distance
    limit {neighbours}
) near
join semcache.entry e using (entry_id)
join semcache.output o using (output_id)
left join semcache.entry_fit f on f.entry_id = near.entry_id
    and f.embedder_id = %(embedder_id)s
    and f.tenant_id = %(tenant_id)s
order by near.distance
