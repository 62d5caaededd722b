-- The approximate indexes: how large, over how much of their scope, how much they find, and whether they are whole.
create or replace view semcache.index_health
with (security_invoker = true)
as
select
    i.relname as index,
    a.kind,
    x.indisvalid as valid,
    pg_size_pretty(pg_relation_size(i.oid)) as size,
    a.rows as rows_at_build,
    (
        select count(*)
        from semcache.embedding v
        where v.scope_id = a.scope_id
          and v.embedder_id = a.embedder_id
    ) as rows_now,
    a.recall,
    a.checked_at,
    a.built_at,
    pg_stat_get_numscans(i.oid) as scans,
    a.scope_id,
    a.embedder_id
from pg_catalog.pg_class i
join pg_catalog.pg_index x on x.indexrelid = i.oid
left join semcache.vector_index a
    on a.embedder_id = split_part(i.relname, '_', 2)::integer
    and a.scope_id = split_part(i.relname, '_', 3)::bigint
where i.relnamespace = 'semcache'::regnamespace
  and i.relname ~ '^ann_\d+_\d+_'
order by pg_relation_size(i.oid) desc;

comment on view semcache.index_health is 'The approximate indexes: how large, over how much of their scope, how much they find, and whether they are whole. It counts rows, so it takes a moment.';
grant select on semcache.index_health to semcache_app, semcache_worker;
