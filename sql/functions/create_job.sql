-- Ask for long work on a cache: what its lines say, or an export or re-embedding of what the cache holds now.
-- Caller: POST of the data API, and `pgsemcache import`. Bound: the lines, or a count of the cache's entries.
-- Errors: SC404 when the cache is gone.

create or replace function semcache.create_job(p_tenant_id bigint, p_cache_id bigint, p_kind text, p_lines json)
returns uuid
language plpgsql
set search_path from current
as $$
declare
    v_job_id uuid;
    v_epoch bigint;
begin
    select c.epoch
    into v_epoch
    from cache c
    where c.tenant_id = p_tenant_id
      and c.cache_id = p_cache_id
      and c.deleted_at is null;

    if not found then
        raise exception 'there is no such cache'
            using errcode = 'SC404';
    end if;

    insert into job (tenant_id, cache_id, kind, total)
    values (
        p_tenant_id, p_cache_id, p_kind,
        case when p_kind not in ('export', 're-embed') then json_array_length(p_lines) else (
            select count(*)
            from entry e
            where e.tenant_id = p_tenant_id
              and e.cache_id = p_cache_id
              and e.epoch = v_epoch
              and (
                  p_kind <> 'export'
                  or (e.quarantined_at is null and (e.expires_at is null or e.expires_at > now()))
              )
        ) end
    )
    returning job_id into v_job_id;

    insert into job_line (job_id, tenant_id, number, line)
    select v_job_id, p_tenant_id, l.number, l.line
    from json_array_elements(p_lines) with ordinality l (line, number);

    insert into audit_log (tenant_id, cache_id, action, detail)
    values (p_tenant_id, p_cache_id, 'create_job', jsonb_build_object('job_id', v_job_id, 'kind', p_kind));

    return v_job_id;
end
$$;

comment on function semcache.create_job(bigint, bigint, text, json) is 'Asks for long work on a cache, with the lines that it is to read, and returns its id.';
revoke all on function semcache.create_job(bigint, bigint, text, json) from public;
grant execute on function semcache.create_job(bigint, bigint, text, json) to semcache_app, semcache_worker;
