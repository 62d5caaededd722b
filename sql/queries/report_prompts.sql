-- The stored prompts for the workload report, the newest first.
select e.prompt, o.prompt_tokens
from semcache.entry e
join semcache.output o using (output_id)
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = e.tenant_id
where e.created_at >= %(since)s
  and (%(cache)s::text is null or c.name = %(cache)s)
  and (%(tenant)s::text is null or t.name = %(tenant)s)
  and c.deleted_at is null
order by e.created_at desc
limit %(prompts)s
