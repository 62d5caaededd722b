-- Scopes that are too large for an exact scan and have no approximate index, or one over less than half of their rows.
select
    v.embedder_id,
    m.dimensions,
    v.scope_id,
    v.rows,
    coalesce(c.policy ->> 'index', 'ivfflat') as kind
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
where c.deleted_at is null
  and (s.ann_index is null or s.ann_rows is null or s.ann_rows * 2 < v.rows or s.ann_index <> coalesce(c.policy ->> 'index', 'ivfflat'))
order by v.rows desc
