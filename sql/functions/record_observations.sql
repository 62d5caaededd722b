-- Write what was found out about the candidates of requests.
-- Caller: the service, after comparisons off the request path, and record_feedback. Locks: none. Bound: the batch. Entries may be gone.

create or replace function semcache.record_observations(p_tenant_id bigint, p_cache_id bigint, p_observations jsonb)
returns void
language plpgsql
set search_path from current
as $$
begin
    insert into observation (
        tenant_id, cache_id, entry_id, similarity, verdict, source, prompt, prompt_verbatim, request_id, embedder_id, rank,
        signals, signals_version, answer_key, probability, served, policy, inclusion
    )
    select p_tenant_id, p_cache_id, o.entry_id, o.similarity, o.verdict, o.source, o.prompt, o.prompt_verbatim::json, o.request_id,
           o.embedder_id, o.rank, o.signals, o.signals_version, decode(o.answer_key, 'hex'), o.probability, o.served, o.policy, o.inclusion
    from jsonb_to_recordset(p_observations) as o (
        entry_id uuid, similarity real, verdict text, source text, prompt text, prompt_verbatim text, request_id uuid,
        embedder_id integer, rank smallint, signals real[], signals_version smallint, answer_key text, probability real, served boolean,
        policy text, inclusion real
    );
end
$$;

comment on function semcache.record_observations(bigint, bigint, jsonb) is
    'Writes what was found out about the candidates of requests.';
revoke all on function semcache.record_observations(bigint, bigint, jsonb) from public;
grant execute on function semcache.record_observations(bigint, bigint, jsonb) to semcache_app, semcache_worker;
