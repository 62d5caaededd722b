-- What came of all that was asked ahead in the last month, of all tenants: how often each outcome, and the tokens.
select
    coalesce(jsonb_object_agg(l.outcome, l.asked), '{}') as outcomes,
    coalesce(sum(l.tokens), 0)::bigint as tokens,
    coalesce(sum(l.tokens) filter (where l.outcome = 'wasted'), 0)::bigint as tokens_wasted
from (
    select p.outcome, count(*) as asked, sum(p.tokens) as tokens
    from semcache.prefetch_log p
    group by p.outcome
) l
