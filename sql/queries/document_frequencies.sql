-- In how many of a cache's newest entries each content word stands, the most frequent words only.
with newest as materialized (
    select f.content
    from semcache.entry e
    join semcache.feature f using (entry_id)
    where e.tenant_id = %(tenant_id)s
      and e.cache_id = %(cache_id)s
      and e.epoch = %(epoch)s
    order by e.created_at desc
    limit %(entries)s
),
word as (
    select
        w.stem,
        count(*) as entries
    from newest n
    cross join lateral (
        select distinct unnest(n.content) as stem
    ) w
    group by w.stem
    order by entries desc, w.stem
    limit %(words)s
)
select
    (select count(*) from newest) as total,
    (select coalesce(jsonb_object_agg(word.stem, word.entries), '{}') from word) as counts
