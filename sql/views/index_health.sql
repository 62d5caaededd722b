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
comment on column semcache.index_health.valid is 'False: a build is under way, or broke off; the worker drops what broke off.';
comment on column semcache.index_health.rows_at_build is 'Vectors of the scope when it was built; it is built anew when they have doubled. Null: lookups do not use it.';
comment on column semcache.index_health.rows_now is 'Vectors of the scope now.';
comment on column semcache.index_health.recall is 'How often it found the nearest neighbour that an exact scan found, 0 to 1; null: not tried since it was built.';
comment on column semcache.index_health.checked_at is 'When that was tried.';
comment on column semcache.index_health.scans is 'How often Postgres read it.';
grant select on semcache.index_health to semcache_app, semcache_worker;
