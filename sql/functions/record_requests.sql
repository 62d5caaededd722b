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
        similarity, latency_ms, stages, tokens_saved, tokens_spent, cost_ms
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
           r.similarity, r.latency_ms, coalesce(r.stages, '{}'), r.tokens_saved, r.tokens_spent, r.cost_ms
    from jsonb_to_recordset(p_requests) as r (
        at timestamptz, cache_id bigint, scope_key text, request_key text, session text, turn text, conversation text,
        entry_id uuid, outcome text, reason text,
        similarity real, latency_ms real, stages jsonb, tokens_saved integer, tokens_spent integer, cost_ms real
    );

    insert into entry_usage (entry_id, tenant_id, hits, last_hit_at)
    select h.entry_id, p_tenant_id, h.hits, h.last_hit_at
    from (
        select r.entry_id, count(*) as hits, max(r.at) as last_hit_at
        from jsonb_to_recordset(p_requests) as r (entry_id uuid, at timestamptz, served boolean)
        where r.served
        group by r.entry_id
    ) h
    join entry e using (entry_id)
    where e.tenant_id = p_tenant_id
    order by h.entry_id
    on conflict (entry_id) do update
    set hits = entry_usage.hits + excluded.hits,
        last_hit_at = greatest(entry_usage.last_hit_at, excluded.last_hit_at);
end
$$;

comment on function semcache.record_requests(bigint, jsonb) is
    'Writes a batch of lookups to request_log and adds the served ones to entry_usage.';
revoke all on function semcache.record_requests(bigint, jsonb) from public;
grant execute on function semcache.record_requests(bigint, jsonb) to semcache_app, semcache_worker;
