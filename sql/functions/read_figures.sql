-- What all caches together hold and how right they serve, for metrics. Tenants and caches are not told apart.
-- Caller: a worker, each minute. Locks: none. Bound: scans of entry's index and of entry_usage,
-- which is narrow, and the observations of 30 days.
-- False hits are counted on requests that were drawn at random and served, each weighted by the inverse of its probability
-- of being drawn; labelled is how many unweighted ones these are worth (Kish).

create or replace function semcache.read_figures()
returns table (
    entries bigint,
    table_bytes jsonb,
    hit_entries bigint,
    mean_hits double precision,
    deviation_hits double precision,
    semantic_labelled double precision,
    semantic_wrong double precision,
    served_labelled double precision,
    served_wrong double precision
)
language sql
stable
set search_path from current
as $$
    with drawn as (
        select
            1 / o.inclusion::float8 as weight,
            (o.verdict <> 'correct')::int as wrong,
            coalesce(o.similarity < 0.99999, true) as semantic
        from observation o
        where o.at > now() - interval '30 days'
          and o.inclusion is not null
          and o.served
    )
    select
        held.entries,
        sizes.bytes,
        used.entries,
        used.mean,
        used.deviation,
        power(sum(d.weight) filter (where d.semantic), 2) / sum(d.weight ^ 2) filter (where d.semantic),
        sum(d.weight * d.wrong) filter (where d.semantic) / sum(d.weight) filter (where d.semantic),
        power(sum(d.weight), 2) / sum(d.weight ^ 2),
        sum(d.weight * d.wrong) / sum(d.weight)
    from (
        select count(*) as entries
        from entry
    ) held
    cross join (
        select jsonb_object_agg(c.relname, pg_total_relation_size(c.oid) + (
            select coalesce(sum(pg_total_relation_size(t.relid)), 0)
            from pg_partition_tree(c.oid) t
            where t.level > 0
        )) as bytes
        from pg_catalog.pg_class c
        where c.relnamespace = 'semcache'::regnamespace
          and c.relkind in ('r', 'p')
          and not c.relispartition
    ) sizes
    cross join (
        select
            count(*) as entries,
            avg(u.hits)::float8 as mean,
            stddev_pop(u.hits)::float8 as deviation
        from entry_usage u
        where u.hits > 0
    ) used
    left join drawn d on true
    group by held.entries, sizes.bytes, used.entries, used.mean, used.deviation
$$;

comment on function semcache.read_figures() is 'What all caches together hold and how right they serve, for metrics.';
revoke all on function semcache.read_figures() from public;
grant execute on function semcache.read_figures() to semcache_worker;
