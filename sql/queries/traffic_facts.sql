-- How the caches of all tenants served in the last hour, and whether workers follow, for `pgsemcache doctor`. A worker asks:
-- others see no tenant. Times in milliseconds, ended in seconds ago.
select
    (
        select count(*)
        from semcache.request_log r
        where r.at > now() - interval '1 hour'
    ) as requests,
    (
        select coalesce(jsonb_object_agg(slow.tier, slow.p99), '{}')
        from (
            select
                case
                    when r.outcome = 'semantic_hit' then 'semantic'
                    when r.stages ? 'exact' then 'exact'
                    else 'l1'
                end as tier,
                percentile_cont(0.99) within group (order by r.latency_ms) as p99
            from semcache.request_log r
            where r.at > now() - interval '1 hour'
              and r.outcome in ('hit', 'semantic_hit')
            group by 1
        ) slow
    ) as p99_ms,
    (
        select stage.name
        from semcache.request_log r
        cross join lateral jsonb_each_text(r.stages) as stage (name, ms)
        where r.at > now() - interval '1 hour'
          and r.outcome in ('hit', 'semantic_hit')
        group by stage.name
        order by percentile_cont(0.99) within group (order by stage.ms::float8) desc
        limit 1
    ) as slowest_stage,
    (
        select extract(epoch from now() - max(t.ended_at))::float8
        from semcache.task t
    ) as ended,
    (
        select coalesce(array_agg(t.name order by t.name), '{}')
        from semcache.task t
        where t.failures >= 3
    ) as failing_tasks,
    (
        select count(*)
        from semcache.index_health i
        where i.rows_now > 3 * i.rows_at_build
    )::int as overgrown_indexes
