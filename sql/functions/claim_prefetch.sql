-- Choose the request that is most worth asking ahead, and note that it is asked. Its
--   score = P(asked within the horizon) * P(no stored answer would do then) * gain * cost - cost
-- must be above 0, where the cost is the time that the model took for it last. Visits are taken to come at random
-- (Poisson), to the whole cache as often as of late, and to each node by its share in the chosen centrality; the horizon
-- ends with the life of the new answer.
-- Caller: the worker's task prefetch, under its lease, again and again until it returns no row.
-- p_models, p_model_keys: the models that may be asked now, and their revision. p_soon: how long before its end an
-- answer is asked for anew. p_budget, p_tenant_budget: most tokens in an hour, of all and of each tenant.
-- Locks: none beyond the new row. Bound: the kept requests of the caches that have prefetch on. A request whose
-- asking brought no answer, or was broken off, rests for ten minutes.

create or replace function semcache.claim_prefetch(
    p_models text[],
    p_model_keys bytea[],
    p_measure text,
    p_horizon interval,
    p_soon interval,
    p_gain double precision,
    p_budget bigint,
    p_tenant_budget bigint
)
returns table (
    prefetch_id bigint, tenant_id bigint, tenant text, cache text, endpoint text, model text, body json, tags text[],
    ttl_ms bigint, why text
)
language plpgsql
set search_path from current
as $$
begin
    return query
    with spent as materialized (
        select p.tenant_id, sum(p.tokens) as tokens
        from prefetch p
        where p.at > now() - interval '1 hour'
        group by p.tenant_id
    ),
    open_cache as materialized (
        select
            c.cache_id, c.name, c.epoch, t.tenant_id, t.name as tenant,
            (c.policy ->> 'ttlMillis')::bigint as ttl_ms,
            (c.policy ->> 'maxTtlMillis')::bigint as max_ttl_ms,
            p_tenant_budget - coalesce(s.tokens, 0) as tokens_left,
            requests_a_second(c.cache_id) as requests_a_second
        from cache c
        join tenant t using (tenant_id)
        left join spent s on s.tenant_id = c.tenant_id
        where c.deleted_at is null
          and c.policy @> '{"prefetch": true}'
          and c.policy ->> 'mode' is distinct from 'off'
          and not c.policy @> '{"shadow": true}'
    ),
    kept as (
        select
            b.node_id, o.tenant_id, o.tenant, o.cache_id, o.name as cache, b.endpoint, b.model, b.body, b.tags, b.ttl_ms,
            b.tokens, coalesce(b.cost_ms, 1)::double precision as cost_ms,
            o.requests_a_second * case p_measure
                when 'popularity' then y.popularity
                when 'pagerank' then y.pagerank
                when 'betweenness' then y.betweenness
                when 'markov' then y.markov
            end as visits_a_second,
            least(extract(epoch from p_horizon), least(b.ttl_ms, o.ttl_ms, o.max_ttl_ms) / 1000.0)::double precision
                as horizon,
            case
                when b.model_key <> m.model_key then 'new_model'
                when e.entry_id is null or e.epoch < o.epoch then 'missing'
                when e.expires_at <= now() then 'expired'
                when e.expires_at < now() + p_soon then 'expiring'
            end as why,
            greatest(extract(epoch from e.expires_at - now()), 0)::double precision as seconds_left
        from open_cache o
        join request_body b using (cache_id)
        join unnest(p_models, p_model_keys) m (model, model_key) on m.model = b.model
        join node n using (node_id)
        join centrality y using (node_id)
        left join lateral (
            select x.entry_id, x.epoch, x.expires_at, x.quarantined_at
            from entry x
            where x.cache_id = b.cache_id
              and x.exact_key = n.exact_key
            order by x.created_at desc
            limit 1
        ) e on true
        where b.tokens <= o.tokens_left
          and e.quarantined_at is null
    ),
    likely as (
        select
            k.*,
            (1 - exp(-least(k.visits_a_second * k.horizon, 700)))
                * case when k.why = 'expiring' then greatest(1 - k.seconds_left / k.horizon, 0) else 1 end as chance
        from kept k
        where k.why is not null
    ),
    best as (
        select l.*, l.cost_ms * (l.chance * p_gain - 1) as score
        from likely l
        where l.chance * p_gain > 1
          and l.tokens + coalesce((select sum(s.tokens) from spent s), 0) <= p_budget
          and not exists (
              select
              from prefetch p
              where p.node_id = l.node_id
                and p.outcome <> 'stored'
                and p.at > now() - interval '10 minutes'
          )
        order by l.cost_ms * (l.chance * p_gain - 1) desc, l.node_id
        limit 1
    ),
    noted as (
        insert into prefetch (tenant_id, cache_id, node_id, why, measure, chance, score, tokens)
        select b.tenant_id, b.cache_id, b.node_id, b.why, p_measure, b.chance, b.score, b.tokens
        from best b
        returning prefetch.prefetch_id
    )
    select
        n.prefetch_id, b.tenant_id, b.tenant, b.cache, b.endpoint, b.model, b.body, b.tags, b.ttl_ms, b.why
    from best b
    cross join noted n;
end
$$;

comment on function semcache.claim_prefetch(text[], bytea[], text, interval, interval, double precision, bigint, bigint) is
    'Chooses the request that is most worth asking ahead, and notes that it is asked; no row where none is worth it, or the budget is spent.';
revoke all on function semcache.claim_prefetch(text[], bytea[], text, interval, interval, double precision, bigint, bigint) from public;
grant execute on function semcache.claim_prefetch(text[], bytea[], text, interval, interval, double precision, bigint, bigint)
    to semcache_worker;
