-- The log for the workload report, in the order of time: what was asked, what came of it, and what the entry takes, as
-- limits of caches count it. Of a long log the newest rows.
select x.request_key, x.entry_id, x.outcome, x.similarity, x.tokens_saved, x.tokens_spent, x.bytes
from (
    select
        r.at, r.request_log_id, r.request_key, r.entry_id, r.outcome, r.similarity, r.tokens_saved, r.tokens_spent, u.bytes
    from semcache.request_log r
    join semcache.cache c using (cache_id)
    join semcache.tenant t on t.tenant_id = r.tenant_id
    left join semcache.entry_usage u on u.entry_id = r.entry_id
    where r.at >= %(since)s
      and (%(cache)s::text is null or c.name = %(cache)s)
      and (%(tenant)s::text is null or t.name = %(tenant)s)
      and c.deleted_at is null
    order by r.at desc, r.request_log_id desc
    limit %(requests)s
) x
order by x.at, x.request_log_id
