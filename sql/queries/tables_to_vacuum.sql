-- Tables of which a tenth is dead and that nobody has vacuumed for a minute.
select t.relname as name
from pg_catalog.pg_stat_user_tables t
where t.schemaname = 'semcache'
  and t.n_dead_tup > 1000 + 0.1 * t.n_live_tup
  and coalesce(greatest(t.last_vacuum, t.last_autovacuum), '-infinity') < now() - interval '1 minute'
order by t.n_dead_tup desc
