-- How often an approximate index finds as near a neighbour of a stored vector as an exact scan does, of a sample of those
-- vectors that have one above the floor; null where none has. The exact side lacks the cast that the index is over.
with asked as materialized (
    select
        v.entry_id,
        v.vector
    from semcache.embedding v
    where v.embedder_id = {embedder_id}
      and v.scope_id = {scope_id}
      and v.entry_id > %(after)s
    order by v.entry_id
    limit %(sample)s
)
select avg((near.similarity > truth.similarity - 0.001)::int)::float8 as recall
from asked a
cross join lateral (
    select max(-(v.vector <#> a.vector)) as similarity
    from semcache.embedding v
    where v.embedder_id = {embedder_id}
      and v.scope_id = {scope_id}
      and v.entry_id <> a.entry_id
) truth
cross join lateral (
    select coalesce(max(x.similarity) filter (where x.entry_id <> a.entry_id), 0) as similarity
    from (
        select
            v.entry_id,
            -(v.vector::halfvec({dimensions}) <#> a.vector::halfvec({dimensions})) as similarity
        from semcache.embedding v
        where v.embedder_id = {embedder_id}
          and v.scope_id = {scope_id}
        order by v.vector::halfvec({dimensions}) <#> a.vector::halfvec({dimensions})
        limit 2
    ) x
) near
where truth.similarity >= %(floor)s
