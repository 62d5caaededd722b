-- Let a living entry answer another request exactly: an entry of its own that shares the output, with the same scope,
-- attributes, tags, age and end, and without a vector, so that nothing is near it. Where the request has an entry already,
-- living or not, nothing is made.
-- Caller: the service, after a judge found the answer right. Locks: the cache's row, shared; the advisory lock of stores
-- of the request; the entry's row, shared. Bound: one entry. Idempotent.

create or replace function semcache.alias_entry(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_entry_id uuid,
    p_exact_key bytea,
    p_prompt text,
    p_prompt_verbatim json
)
returns uuid
language plpgsql
set search_path from current
as $$
declare
    v_epoch bigint;
    v_entry_id uuid;
begin
    select c.epoch
    into v_epoch
    from cache c
    where c.tenant_id = p_tenant_id
      and c.cache_id = p_cache_id
      and c.deleted_at is null
    for share;

    perform pg_advisory_xact_lock(hashtextextended(encode(p_exact_key, 'hex'), p_cache_id));

    with original as (
        select e.*
        from entry e
        where e.tenant_id = p_tenant_id
          and e.cache_id = p_cache_id
          and e.entry_id = p_entry_id
          and e.epoch = v_epoch
          and e.quarantined_at is null
          and (e.expires_at is null or e.expires_at > now())
        for share
    )
    insert into entry (
        tenant_id, cache_id, scope_id, output_id, epoch, exact_key, attributes_key, variant, prompt, prompt_verbatim,
        attributes, tags, provenance, created_at, expires_at, alias_of
    )
    select o.tenant_id, o.cache_id, o.scope_id, o.output_id, o.epoch, p_exact_key, o.attributes_key, 0, p_prompt, p_prompt_verbatim,
           o.attributes, o.tags, o.provenance, o.created_at, o.expires_at, o.entry_id
    from original o
    on conflict (cache_id, exact_key, attributes_key, variant) do nothing
    returning entry.entry_id into v_entry_id;

    if v_entry_id is not null then
        perform admit_entry(
            p_tenant_id, p_cache_id, v_entry_id, p_exact_key, 0, octet_length(p_prompt),
            (select o.cost_ms from entry e join output o using (output_id) where e.entry_id = v_entry_id)
        );
    end if;
    return v_entry_id;
end
$$;

comment on function semcache.alias_entry(bigint, bigint, uuid, bytea, text, json) is
    'Lets a living entry answer another request exactly and returns the alias; null where that request has an entry, or the entry is dead.';
revoke all on function semcache.alias_entry(bigint, bigint, uuid, bytea, text, json) from public;
grant execute on function semcache.alias_entry(bigint, bigint, uuid, bytea, text, json) to semcache_app, semcache_worker;
