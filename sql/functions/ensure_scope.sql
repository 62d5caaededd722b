-- Find or make a scope with its model and sampling config. Another identity of a known model's name is noted in
-- audit_log: from here on the answers of the earlier ones serve no request that comes with the new one.
-- Caller: the service, before the first store into a scope that it does not know.
-- Locks: none beyond the unique keys. Bound: three rows. Idempotent. Errors: SC404 when the cache is gone.

create or replace function semcache.ensure_scope(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_scope_key bytea,
    p_canonical_version smallint,
    p_parts jsonb,
    p_model_key bytea,
    p_model jsonb,
    p_config_key bytea,
    p_config json
)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_model_id bigint;
    v_config_id bigint;
    v_scope_id bigint;
begin
    if not exists (
        select
        from cache c
        where c.tenant_id = p_tenant_id
          and c.cache_id = p_cache_id
          and c.deleted_at is null
    ) then
        raise exception 'there is no such cache'
            using errcode = 'SC404';
    end if;

    insert into model (
        tenant_id, model_key, name, revision, tokenizer, chat_template,
        dtype, quantization, kv_cache_dtype, engine_version
    )
    select p_tenant_id, p_model_key, m.name, m.revision, m.tokenizer, m.chat_template,
           m.dtype, m.quantization, m.kv_cache_dtype, m.engine_version
    from jsonb_to_record(p_model) as m (
        name text, revision text, tokenizer text, chat_template text,
        dtype text, quantization text, kv_cache_dtype text, engine_version text
    )
    on conflict (tenant_id, model_key) do nothing
    returning model_id into v_model_id;

    if v_model_id is not null then
        insert into audit_log (tenant_id, cache_id, action, detail)
        select p_tenant_id, p_cache_id, 'model_changed',
               jsonb_build_object('name', m.name, 'model_id', v_model_id, 'previous_model_id', m.model_id)
        from model m
        where m.tenant_id = p_tenant_id
          and m.name = p_model ->> 'name'
          and m.model_id <> v_model_id
        order by m.model_id desc
        limit 1;
    end if;

    select m.model_id
    into strict v_model_id
    from model m
    where m.tenant_id = p_tenant_id
      and m.model_key = p_model_key;

    insert into sampling_config (tenant_id, config_key, config)
    values (p_tenant_id, p_config_key, p_config)
    on conflict (tenant_id, config_key) do nothing;

    select s.sampling_config_id
    into strict v_config_id
    from sampling_config s
    where s.tenant_id = p_tenant_id
      and s.config_key = p_config_key;

    insert into scope (
        tenant_id, cache_id, scope_key, model_id, sampling_config_id, canonical_version, parts
    )
    values (p_tenant_id, p_cache_id, p_scope_key, v_model_id, v_config_id, p_canonical_version, p_parts)
    on conflict (cache_id, scope_key) do nothing;

    select s.scope_id
    into strict v_scope_id
    from scope s
    where s.tenant_id = p_tenant_id
      and s.cache_id = p_cache_id
      and s.scope_key = p_scope_key;

    return v_scope_id;
end
$$;

comment on function semcache.ensure_scope(bigint, bigint, bytea, smallint, jsonb, bytea, jsonb, bytea, json) is
    'Finds or makes the scope of this key, with its model and sampling config, and returns its number.';
revoke all on function semcache.ensure_scope(bigint, bigint, bytea, smallint, jsonb, bytea, jsonb, bytea, json) from public;
grant execute on function semcache.ensure_scope(bigint, bigint, bytea, smallint, jsonb, bytea, jsonb, bytea, json)
    to semcache_app, semcache_worker;
