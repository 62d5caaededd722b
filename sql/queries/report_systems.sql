-- System prompts, by their digest, for the workload report: how many requests repeat each, and the prompt tokens of those.
select
    s.parts ->> 'system' as system,
    count(*) as requests,
    coalesce(sum(o.prompt_tokens), 0)::bigint as prompt_tokens
from semcache.request_log r
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = r.tenant_id
join semcache.scope s on s.cache_id = r.cache_id and s.scope_key = r.scope_key
left join semcache.entry e on e.entry_id = r.entry_id
left join semcache.output o using (output_id)
where r.at >= %(since)s
  and (%(cache)s::text is null or c.name = %(cache)s)
  and (%(tenant)s::text is null or t.name = %(tenant)s)
  and c.deleted_at is null
  and s.parts ? 'system'
group by s.parts ->> 'system'
order by prompt_tokens desc, requests desc
limit %(systems)s
