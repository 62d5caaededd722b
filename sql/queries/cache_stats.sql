-- What a cache holds and how it served since a time.
-- Rates are left to the reader: a cache that was never asked has none.
select
    held.*,
    size.max_entries,
    size.max_bytes,
    size.full_percent,
    coalesce(size.evicted, 0) as evicted,
    served.*
from (
    select
        count(*) as entries,
        count(*) filter (where e.pinned) as pinned,
        count(*) filter (where e.quarantined_at is not null) as quarantined,
        coalesce(sum(o.bytes), 0)::bigint as answer_bytes
    from semcache.entry e
    join semcache.output o using (output_id)
    join semcache.cache c using (cache_id)
    where e.tenant_id = %(tenant_id)s
      and e.cache_id = %(cache_id)s
      and e.epoch = c.epoch
      and (e.expires_at is null or e.expires_at > now())
) held
left join (
    select k.max_entries, k.max_bytes, k.full_percent, k.evicted
    from semcache.capacity k
    where k.cache_id = %(cache_id)s
) size on true
cross join (
    select
        count(*) as lookups,
        count(*) filter (where r.outcome = 'hit') as exact_hits,
        count(*) filter (where r.outcome = 'semantic_hit') as semantic_hits,
        count(*) filter (where r.outcome = 'coalesced') as coalesced_hits,
        count(*) filter (where r.outcome = 'stale') as stale_hits,
        count(*) filter (where r.outcome in ('hit', 'semantic_hit', 'coalesced', 'stale')) as hits,
        count(*) filter (where r.outcome = 'miss') as misses,
        count(*) filter (where r.outcome = 'bypass') as bypasses,
        count(*) filter (where r.outcome = 'refresh') as refreshes,
        count(*) filter (where r.outcome = 'shadow') as shadowed,
        count(*) filter (where r.outcome = 'error') as errors,
        coalesce(sum(r.tokens_saved), 0)::bigint as tokens_saved,
        coalesce(sum(r.tokens_spent), 0)::bigint as tokens_spent,
        percentile_cont(0.5) within group (order by r.latency_ms) as latency_p50_ms,
        percentile_cont(0.99) within group (order by r.latency_ms) as latency_p99_ms
    from semcache.request_log r
    where r.tenant_id = %(tenant_id)s
      and r.cache_id = %(cache_id)s
      and r.at >= %(since)s
) served
