-- Scopes that are too large for an exact scan and have no approximate index of their embedder, one over less than half of
-- their rows, one of another kind, or one that finds too little and was not built within the hour. Largest first.
select
    v.embedder_id,
    m.dimensions,
    v.scope_id,
    v.rows,
    coalesce(c.policy ->> 'index', 'ivfflat') as kind,
    a.scope_id is not null as indexed
from (
    select
        x.embedder_id,
        x.scope_id,
        count(*) as rows
    from semcache.embedding x
    group by x.embedder_id, x.scope_id
    having count(*) > %(exact_scan_limit)s
) v
join semcache.embedder m using (embedder_id)
join semcache.scope s using (scope_id)
join semcache.cache c using (cache_id)
left join semcache.vector_index a using (scope_id, embedder_id)
where c.deleted_at is null
  and (
      a.scope_id is null
      or a.rows * 2 < v.rows
      or a.kind <> coalesce(c.policy ->> 'index', 'ivfflat')
      or (a.recall < %(recall_floor)s and a.built_at < now() - interval '1 hour')
  )
order by v.rows desc
