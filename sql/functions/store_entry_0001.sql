-- What the release of the first schema calls: its replicas serve on while this release comes. Goes with the next release.
-- Caller: an older service. Else as store_entry, without what is learned from an entry.

create or replace function semcache.store_entry(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_changes bigint,
    p_scope_id bigint,
    p_exact_key bytea,
    p_attributes_key bytea,
    p_prompt text,
    p_prompt_verbatim json,
    p_attributes jsonb,
    p_tags text[],
    p_provenance text,
    p_ttl_ms bigint,
    p_payload json,
    p_prompt_tokens integer,
    p_completion_tokens integer,
    p_cost_ms real,
    p_embedder_id integer,
    p_vector halfvec,
    p_variants integer
)
returns table (entry_id uuid, expires_at timestamptz, invalidation_id bigint)
language plpgsql
set search_path from current
as $$
begin
    return query
    select s.entry_id, s.expires_at, s.invalidation_id
    from store_entry(
        p_tenant_id, p_cache_id, p_changes, p_scope_id, p_exact_key, p_attributes_key, p_prompt, p_prompt_verbatim,
        p_attributes, p_tags, p_provenance, p_ttl_ms, p_payload, p_prompt_tokens, p_completion_tokens, p_cost_ms,
        p_embedder_id, p_vector, p_variants, null, null, null
    ) s;
end
$$;

comment on function semcache.store_entry(bigint, bigint, bigint, bigint, bytea, bytea, text, json, jsonb, text[], text, bigint, json, integer, integer, real, integer, halfvec, integer) is
    'As the release of the first schema calls it: without what is learned from an entry.';
revoke all on function semcache.store_entry(bigint, bigint, bigint, bigint, bytea, bytea, text, json, jsonb, text[], text, bigint, json, integer, integer, real, integer, halfvec, integer) from public;
grant execute on function semcache.store_entry(bigint, bigint, bigint, bigint, bytea, bytea, text, json, jsonb, text[], text, bigint, json, integer, integer, real, integer, halfvec, integer) to semcache_app, semcache_worker;
