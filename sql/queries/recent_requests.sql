-- What was asked of a cache lately, oldest first: whose answer it was. A neighbour's answer counts for the request that it was
-- made for, as long as that stands in the log too.
select
    coalesce(
        first_value(r.request_key) over (
            partition by r.entry_id
            order by (r.outcome in ('miss', 'refresh')) desc, r.request_log_id
        ),
        r.request_key
    ) as key
from (
    select
        l.request_log_id,
        l.request_key,
        coalesce(l.entry_id::text, encode(l.request_key, 'hex')) as entry_id,
        l.outcome
    from semcache.request_log l
    where l.cache_id = %(cache_id)s
      and l.request_key is not null
      and l.outcome in ('hit', 'semantic_hit', 'miss', 'refresh', 'stale', 'coalesced')
    order by l.at desc
    limit %(limit)s
) r
order by r.request_log_id
