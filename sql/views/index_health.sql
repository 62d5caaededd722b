-- The approximate indexes: how large, over how much of their scope, and whether they are whole.
create or replace view semcache.index_health
with (security_invoker = true)
as
select
    i.relname as index,
    s.ann_index as kind,
    x.indisvalid as valid,
    pg_size_pretty(pg_relation_size(i.oid)) as size,
    s.ann_rows as rows_at_build,
    (
        select count(*)
        from semcache.embedding v
        where v.scope_id = s.scope_id
          and v.embedder_id = split_part(i.relname, '_', 2)::int
    ) as rows_now,
    pg_stat_get_numscans(i.oid) as scans,
    s.scope_id
from pg_catalog.pg_class i
join pg_catalog.pg_index x on x.indexrelid = i.oid
left join semcache.scope s on s.scope_id = split_part(i.relname, '_', 3)::bigint
where i.relnamespace = 'semcache'::regnamespace
  and i.relname ~ '^ann_\d+_\d+_'
order by pg_relation_size(i.oid) desc;

comment on view semcache.index_health is 'The approximate indexes: how large, over how much of their scope, and whether they are whole. It counts rows, so it takes a moment.';
grant select on semcache.index_health to semcache_app, semcache_worker;
