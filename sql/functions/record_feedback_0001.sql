-- What the release of the first schema calls: its replicas serve on while this release comes. Goes with the next release.
-- Caller: an older service. Else as record_feedback.

create or replace function semcache.record_feedback(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_entry_id uuid,
    p_verdict text,
    p_similarity real,
    p_prompt text,
    p_prompt_verbatim json
)
returns bigint
language plpgsql
set search_path from current
as $$
begin
    return record_feedback(
        p_tenant_id, p_cache_id, p_entry_id, p_verdict,
        jsonb_build_object(
            'entry_id', p_entry_id, 'similarity', p_similarity, 'verdict', p_verdict, 'source', 'feedback',
            'prompt', p_prompt, 'prompt_verbatim', p_prompt_verbatim::text, 'served', false
        )
    );
end
$$;

comment on function semcache.record_feedback(bigint, bigint, uuid, text, real, text, json) is
    'As the release of the first schema calls it.';
revoke all on function semcache.record_feedback(bigint, bigint, uuid, text, real, text, json) from public;
grant execute on function semcache.record_feedback(bigint, bigint, uuid, text, real, text, json) to semcache_app, semcache_worker;
