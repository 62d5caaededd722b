-- Served answers that were found wrong, by somebody or by an audit, with the prompts on both sides, how near they were, and what was answered.
create or replace view semcache.false_hits
with (security_invoker = true)
as
select
    t.name as tenant,
    c.name as cache,
    o.at,
    o.source,
    o.policy,
    o.similarity,
    left(o.prompt, 80) as asked,
    left(e.prompt, 80) as stored,
    left(
        coalesce(
            y.payload #>> '{body,choices,0,message,content}',
            y.payload #>> '{body,choices,0,text}',
            y.payload #>> '{body,output,0,content,0,text}'
        ),
        80
    ) as answer,
    o.entry_id,
    e.quarantined_at
from semcache.observation o
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = o.tenant_id
left join semcache.entry e on e.entry_id = o.entry_id
left join semcache.output y on y.output_id = e.output_id
where o.verdict = 'wrong'
  and (o.served or o.source = 'feedback')
order by o.at desc;

comment on view semcache.false_hits is 'Served answers that were found wrong, by somebody or by an audit, with the prompts on both sides, how near they were, and what was answered.';
comment on column semcache.false_hits.source is 'Who says so: feedback of a caller, or a comparison with a fresh answer.';
comment on column semcache.false_hits.policy is 'The policy that decided; null where that is not known.';
comment on column semcache.false_hits.similarity is 'Between the two prompts; 1: the same. Null where the verdict names no prompt.';
comment on column semcache.false_hits.asked is 'The prompt that got the answer, its beginning; null where nobody gave it.';
comment on column semcache.false_hits.stored is 'The prompt that the answer was stored for, its beginning; null: the entry is gone.';
comment on column semcache.false_hits.quarantined_at is 'When the entry ceased to be served for it; null: it is served, or gone.';
grant select on semcache.false_hits to semcache_app, semcache_worker;
