-- How the approximate indexes are together, and how many rows of each table are dead, with those of its partitions.
select
    (
        select min(v.recall)
        from semcache.vector_index v
    ) as lowest_recall,
    (
        select coalesce(sum(m.index_builds), 0)::bigint
        from semcache.embedder m
    ) as builds,
    (
        select jsonb_object_agg(d.name, d.dead)
        from (
            select
                c.relname as name,
                sum(t.n_dead_tup)::bigint as dead
            from pg_catalog.pg_stat_user_tables t
            join pg_catalog.pg_class c on c.oid = coalesce(pg_partition_root(t.relid), t.relid)
            where t.schemaname = 'semcache'
            group by c.relname
        ) d
    ) as dead_rows
