-- The scope, and in it the newest living answers to exactly this request that have the attributes asked for and so many
-- seconds left. Where stale ones may be served these are below 0, and an expired answer comes after those alive.
-- No row: the scope does not exist, so nothing can be near either. One round trip, three index look-ups.
select
    s.scope_id,
    s.ttl_ms as scope_ttl_ms,
    array(
        select a.embedder_id
        from semcache.vector_index a
        where a.scope_id = s.scope_id
    ) as indexed_by,
    found.*
from semcache.scope s
join semcache.cache c using (cache_id)
left join lateral (
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
        e.alias_of is not null as alias
    from semcache.entry e
    join semcache.output o using (output_id)
    where e.tenant_id = s.tenant_id
      and e.cache_id = s.cache_id
      and e.exact_key = %(exact_key)s
      and e.attributes @> %(attributes)s
      and e.epoch = c.epoch
      and e.quarantined_at is null
      and (e.expires_at is null or e.expires_at > now() + make_interval(secs => %(min_ttl)s))
      and (%(client_answers)s or e.provenance <> 'client')
      and (%(max_age)s::float8 is null or e.created_at > now() - make_interval(secs => %(max_age)s))
    order by (e.expires_at <= now()) is true, e.created_at desc, e.entry_id
    limit %(answers)s
) found on true
where s.tenant_id = %(tenant_id)s
  and s.cache_id = %(cache_id)s
  and s.scope_key = %(scope_key)s
  and c.deleted_at is null
