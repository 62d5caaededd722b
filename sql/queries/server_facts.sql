-- What Postgres says of itself, for `pgsemcache doctor`: anybody may read it. Sizes in bytes, times in seconds.
select
    current_setting('server_version_num')::int as version,
    current_setting('server_version') as version_text,
    (
        select e.extversion
        from pg_catalog.pg_extension e
        where e.extname = 'vector'
    ) as pgvector,
    extract(epoch from clock_timestamp())::float8 as clock,
    pg_is_in_recovery() as in_recovery,
    current_setting('fsync')::boolean as fsync,
    current_setting('full_page_writes')::boolean as full_page_writes,
    current_setting('autovacuum')::boolean as autovacuum,
    current_setting('max_connections')::int as max_connections,
    (
        select sum(d.numbackends)::int
        from pg_catalog.pg_stat_database d
    ) as connections,
    (
        select s.setting::bigint * 8192
        from pg_catalog.pg_settings s
        where s.name = 'shared_buffers'
    ) as shared_buffers,
    (
        select coalesce(sum(pg_total_relation_size(t.relid)), 0)::bigint
        from pg_partition_tree(to_regclass('semcache.embedding')) t
    ) as vector_bytes,
    (
        select coalesce(max(extract(epoch from r.replay_lag)), 0)::float8
        from pg_catalog.pg_stat_replication r
    ) as replay_lag,
    (
        select coalesce(array_agg(c.relname::text order by c.relname), '{}')
        from pg_catalog.pg_class c
        join pg_catalog.pg_index x on x.indexrelid = c.oid
        where c.relnamespace = 'semcache'::regnamespace
          and not x.indisvalid
    ) as invalid_indexes,
    (
        select coalesce(array_agg(t.relname::text order by t.n_dead_tup desc), '{}')
        from pg_catalog.pg_stat_all_tables t
        where t.schemaname = 'semcache'
          and t.n_dead_tup > 10000
          and t.n_dead_tup > 0.25 * (t.n_live_tup + t.n_dead_tup)
    ) as bloated_tables
