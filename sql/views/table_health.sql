-- The tables: how large they and their indexes are, how much of them is dead, and when that was last cleared.
create or replace view semcache.table_health
with (security_invoker = true)
as
select
    t.relname as name,
    pg_size_pretty(pg_table_size(t.relid)) as size,
    pg_size_pretty(pg_indexes_size(t.relid)) as indexes,
    t.n_live_tup as rows,
    t.n_dead_tup as dead_rows,
    round(100.0 * t.n_dead_tup / nullif(t.n_live_tup + t.n_dead_tup, 0), 1) as dead_percent,
    round(100.0 * t.n_tup_hot_upd / nullif(t.n_tup_upd, 0), 1) as hot_percent,
    greatest(t.last_vacuum, t.last_autovacuum) as vacuumed_at
from pg_catalog.pg_stat_user_tables t
where t.schemaname = 'semcache'
order by pg_total_relation_size(t.relid) desc;

comment on view semcache.table_health is 'The tables: how large they and their indexes are, how much of them is dead, and when that was last cleared.';
comment on column semcache.table_health.rows is 'As Postgres estimates it, as are dead rows.';
comment on column semcache.table_health.dead_percent is 'Dead rows of all rows.';
comment on column semcache.table_health.hot_percent is 'Updates that touched no index (HOT), of all updates.';
comment on column semcache.table_health.vacuumed_at is 'By hand, by the worker or by Postgres itself; null: never.';
grant select on semcache.table_health to semcache_app, semcache_worker;
