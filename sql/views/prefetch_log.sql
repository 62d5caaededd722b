-- What was asked ahead, the latest first, and what came of it. Wasted is what ended without ever having been served.
create or replace view semcache.prefetch_log
with (security_invoker = true)
as
select
    p.at,
    t.name as tenant,
    c.name as cache,
    left(coalesce(e.prompt, n.prompt), 80) as prompt,
    p.why,
    p.measure,
    p.chance,
    p.score,
    case
        when p.outcome = 'asking' and p.at < now() - interval '10 minutes' then 'broken off'
        when p.outcome <> 'stored' then p.outcome
        when p.hits > 0 then 'used'
        when l.entry_id is null then 'wasted'
        else 'waiting'
    end as outcome,
    p.hits,
    p.first_hit_at - p.at as first_hit_after,
    p.tokens,
    p.cost_ms,
    p.node_id,
    p.entry_id,
    p.prefetch_id
from semcache.prefetch p
join semcache.cache c using (cache_id)
join semcache.tenant t on t.tenant_id = p.tenant_id
left join semcache.entry e using (entry_id)
left join lateral (
    select e.entry_id
    where e.epoch = c.epoch
      and e.quarantined_at is null
      and (e.expires_at is null or e.expires_at > now())
) l on true
left join lateral (
    select x.prompt
    from semcache.node q
    join semcache.entry x on x.cache_id = q.cache_id and x.exact_key = q.exact_key
    where q.node_id = p.node_id
    order by x.created_at desc
    limit 1
) n on true
order by p.at desc;

comment on view semcache.prefetch_log is 'What was asked ahead, why, and whether it was served.';
comment on column semcache.prefetch_log.why is 'Why no stored answer would have done: missing, expired, expiring soon, or of an earlier revision of the model (new_model).';
comment on column semcache.prefetch_log.measure is 'The centrality that chose it.';
comment on column semcache.prefetch_log.chance is 'Probability, as estimated, that it is asked for while no stored answer would do.';
comment on column semcache.prefetch_log.score is 'What it was expected to save, in milliseconds of the model.';
comment on column semcache.prefetch_log.outcome is 'used; waiting: it lives, unserved; wasted: it ended unserved; landed: a user had it stored meanwhile; failed; busy: the model server turned it away; asking, or broken off.';
comment on column semcache.prefetch_log.hits is 'How often the answer was served.';
comment on column semcache.prefetch_log.first_hit_after is 'Time to its first hit; null: none yet.';
comment on column semcache.prefetch_log.tokens is 'Tokens that the model counted; while it is asked, those of the last answer.';
comment on column semcache.prefetch_log.cost_ms is 'Time that the model took.';
grant select on semcache.prefetch_log to semcache_app, semcache_worker;
