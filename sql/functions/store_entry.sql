-- Store one answer for one prompt. Of p_variants places for the same request and attributes an empty one is taken, or
-- one whose answer is dead, else the oldest answer is replaced; what replaces a pinned one is pinned. Nothing is stored,
-- and entry_id is null, where the cache was flushed, changed or deleted from since it had p_changes.
-- Caller: the service, after a store by the data API or a complete answer of the model.
-- Locks: the cache's row, shared, so that a change of it comes before or after; an advisory lock on the request, so that
-- equal stores come one after the other; then record_invalidation's.
-- Bound: one entry, its output, vector, features and usage, twice. Errors: SC404 when the cache is gone.

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
    p_variants integer,
    p_answer_key bytea,
    p_features_version smallint,
    p_features jsonb
)
returns table (entry_id uuid, expires_at timestamptz, invalidation_id bigint)
language plpgsql
set search_path from current
as $$
declare
    v_epoch bigint;
    v_changes bigint;
    v_output_id bigint;
    v_entry_id uuid;
    v_expires_at timestamptz := now() + p_ttl_ms * interval '1 millisecond';
    v_known boolean;
    v_variant integer;
    v_replaced uuid[];
    v_pinned boolean := false;
begin
    select c.epoch, c.changes
    into v_epoch, v_changes
    from cache c
    where c.tenant_id = p_tenant_id
      and c.cache_id = p_cache_id
      and c.deleted_at is null
    for share;

    if not found then
        raise exception 'there is no such cache'
            using errcode = 'SC404';
    end if;

    if v_changes <> p_changes then
        return next;
        return;
    end if;

    perform pg_advisory_xact_lock(hashtextextended(encode(p_exact_key, 'hex'), p_cache_id));

    -- an answer under other attributes may be remembered for this request too, so it counts as known
    v_known := exists (
        select
        from entry e
        where e.tenant_id = p_tenant_id
          and e.cache_id = p_cache_id
          and e.exact_key = p_exact_key
    );

    select p.variant
    into strict v_variant
    from generate_series(0, p_variants - 1) p (variant)
    left join entry e
        on e.tenant_id = p_tenant_id
        and e.cache_id = p_cache_id
        and e.exact_key = p_exact_key
        and e.attributes_key = p_attributes_key
        and e.variant = p.variant
    order by
        coalesce(
            e.epoch = v_epoch and e.quarantined_at is null and (e.expires_at is null or e.expires_at > now()), false
        ),
        e.created_at nulls first,
        p.variant
    limit 1;

    if v_known then
        select coalesce(array_agg(e.entry_id), '{}'), coalesce(bool_or(e.pinned and e.epoch = v_epoch), false)
        into v_replaced, v_pinned
        from entry e
        where e.tenant_id = p_tenant_id
          and e.cache_id = p_cache_id
          and e.exact_key = p_exact_key
          and e.attributes_key = p_attributes_key
          and e.variant = v_variant;

        perform drop_aliases(p_tenant_id, v_replaced);
        perform remove_entries(p_tenant_id, v_replaced);
    end if;

    insert into output (tenant_id, payload, bytes, prompt_tokens, completion_tokens, cost_ms, answer_key)
    values (
        p_tenant_id, p_payload, octet_length(p_payload::text), p_prompt_tokens, p_completion_tokens, p_cost_ms,
        p_answer_key
    )
    returning output.output_id into v_output_id;

    insert into entry (
        tenant_id, cache_id, scope_id, output_id, epoch, exact_key, attributes_key, variant,
        prompt, prompt_verbatim, attributes, tags, provenance, pinned, expires_at
    )
    values (
        p_tenant_id, p_cache_id, p_scope_id, v_output_id, v_epoch, p_exact_key, p_attributes_key, v_variant,
        p_prompt, p_prompt_verbatim, p_attributes, p_tags, p_provenance, v_pinned, v_expires_at
    )
    returning entry.entry_id into v_entry_id;

    if p_vector is not null then
        insert into embedding (tenant_id, embedder_id, scope_id, entry_id, vector)
        values (p_tenant_id, p_embedder_id, p_scope_id, v_entry_id, p_vector);
    end if;

    if p_features is not null then
        insert into feature
        select f.*
        from jsonb_populate_record(
            null::feature,
            p_features || jsonb_build_object(
                'entry_id', v_entry_id, 'tenant_id', p_tenant_id, 'version', p_features_version
            )
        ) f;
    end if;

    perform admit_entry(
        p_tenant_id, p_cache_id, v_entry_id, p_exact_key, octet_length(p_payload::text),
        octet_length(p_prompt) + coalesce(pg_column_size(p_vector), 0), p_cost_ms
    );

    entry_id := v_entry_id;
    expires_at := v_expires_at;
    invalidation_id := case when v_known then record_invalidation(p_cache_id, p_exact_key) end;
    return next;
end
$$;

comment on function semcache.store_entry(bigint, bigint, bigint, bigint, bytea, bytea, text, json, jsonb, text[], text, bigint, json, integer, integer, real, integer, halfvec, integer, bytea, smallint, jsonb) is
    'Stores one answer for one prompt and returns its entry; invalidation_id is set when replicas may remember an older one. All null where the cache was changed since p_changes.';
revoke all on function semcache.store_entry(bigint, bigint, bigint, bigint, bytea, bytea, text, json, jsonb, text[], text, bigint, json, integer, integer, real, integer, halfvec, integer, bytea, smallint, jsonb) from public;
grant execute on function semcache.store_entry(bigint, bigint, bigint, bigint, bytea, bytea, text, json, jsonb, text[], text, bigint, json, integer, integer, real, integer, halfvec, integer, bytea, smallint, jsonb)
    to semcache_app, semcache_worker;
