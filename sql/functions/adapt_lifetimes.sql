-- Lengthen the lifetimes of scopes that are served often, by a fifth up to the policy's longest (a day where it names none),
-- and shorten those of scopes that are not, by a fifth down to its shortest. It follows popularity and knows nothing of right
-- and wrong. Only caches whose adaptiveTtl is hit_rate, and only scopes with 20 requests in p_window.
-- Caller: the worker. Locks: the rows of scope. Bound: the log of p_window.

create or replace function semcache.adapt_lifetimes(p_window interval)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_changed bigint;
begin
    update scope s
    set ttl_ms = least(
            greatest(coalesce(s.ttl_ms, a.usual, a.shortest) * case when a.rate > 0.8 then 1.2 else 0.8 end, a.shortest),
            a.longest
        )
    from (
        select
            x.scope_id,
            avg((r.outcome in ('hit', 'semantic_hit', 'coalesced', 'stale'))::int) as rate,
            min((c.policy ->> 'ttlMillis')::bigint) as usual,
            min(coalesce((c.policy ->> 'minTtlMillis')::bigint, 300000)) as shortest,
            min(coalesce((c.policy ->> 'maxTtlMillis')::bigint, 86400000)) as longest
        from cache c
        join request_log r using (cache_id)
        join scope x on x.cache_id = c.cache_id and x.scope_key = r.scope_key
        where c.policy ->> 'adaptiveTtl' = 'hit_rate'
          and c.deleted_at is null
          and r.at > now() - p_window
        group by x.scope_id
        having count(*) >= 20
    ) a
    where s.scope_id = a.scope_id
      and (a.rate > 0.8 or a.rate < 0.3);
    get diagnostics v_changed = row_count;
    return v_changed;
end
$$;

comment on function semcache.adapt_lifetimes(interval) is
    'Moves the lifetimes of scopes by their hit rate, in caches whose policy says so; returns how many.';
revoke all on function semcache.adapt_lifetimes(interval) from public;
grant execute on function semcache.adapt_lifetimes(interval) to semcache_worker;
