-- Write a batch of lookups to the log and count their hits. A request that continues a conversation, and whose session
-- the service does not know, gets the session in which the turn before was asked, else a new one.
-- Caller: the service, each second and at shutdown; one call for each tenant.
-- Locks: the log's advisory lock, shared, so that log_head() knows that nothing is still to come below it; then usage
-- rows, in the order of entries. Bound: the batch. Entries that are gone are skipped.

create or replace function semcache.record_requests(p_tenant_id bigint, p_requests jsonb)
returns void
language plpgsql
set search_path from current
as $$
begin
    perform set_config('synchronous_commit', 'off', true); -- a crash may cost the last second of the log, no request waits
    perform pg_advisory_xact_lock_shared(hashtextextended('request_log', 0));

    insert into request_log (
        at, tenant_id, cache_id, scope_key, request_key, session, turn, entry_id, outcome, reason,
        similarity, latency_ms, stages, tokens_saved, tokens_spent, cost_ms, request_id
    )
    select r.at, p_tenant_id, r.cache_id, decode(r.scope_key, 'hex'), decode(r.request_key, 'hex'),
           coalesce(
               r.session,
               (
                   select l.session
                   from request_log l
                   where l.tenant_id = p_tenant_id
                     and l.turn = decode(r.conversation, 'hex')
                   order by l.at desc
                   limit 1
               ),
               case when r.conversation is not null then gen_random_uuid()::text end
           ),
           decode(r.turn, 'hex'), r.entry_id, r.outcome, r.reason,
           r.similarity, r.latency_ms, coalesce(r.stages, '{}'), r.tokens_saved, r.tokens_spent, r.cost_ms,
           r.request_id
    from jsonb_to_recordset(p_requests) as r (
        at timestamptz, cache_id bigint, scope_key text, request_key text, session text, turn text, conversation text,
        entry_id uuid, outcome text, reason text,
        similarity real, latency_ms real, stages jsonb, tokens_saved integer, tokens_spent integer, cost_ms real,
        request_id text
    );

    with served as (
        select r.entry_id, count(*) as hits, max(r.at) as last_hit_at
        from jsonb_to_recordset(p_requests) as r (entry_id uuid, at timestamptz, served boolean)
        where r.served
        group by r.entry_id
    ),
    locked as (
        select u.entry_id, u.cache_id, s.hits, s.last_hit_at
        from entry_usage u
        join served s using (entry_id)
        where u.tenant_id = p_tenant_id
        order by u.entry_id
        for update of u
    )
    update entry_usage u
    set hits = u.hits + l.hits,
        last_hit_at = greatest(u.last_hit_at, l.last_hit_at),
        uses = least(u.uses + l.hits, 3),
        score = add_decayed(u.score, coalesce(z.clock, 0) + ln(l.hits) / ln(2.0::float8))
    from locked l
    left join cache_size z using (cache_id)
    where u.entry_id = l.entry_id;
end
$$;

comment on function semcache.record_requests(bigint, jsonb) is
    'Writes a batch of lookups to request_log and adds the served ones to entry_usage.';
revoke all on function semcache.record_requests(bigint, jsonb) from public;
grant execute on function semcache.record_requests(bigint, jsonb) to semcache_app, semcache_worker;
