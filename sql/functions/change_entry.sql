-- Change what may be changed of an entry. A null parameter leaves its column; p_clear_ttl lets the entry live for ever.
-- Its aliases go, since the change is not theirs.
-- Caller: PATCH of the data API. Locks: the row, then record_invalidation's. Bound: one entry. Errors: SC405 when there is none, or it was flushed.

create or replace function semcache.change_entry(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_entry_id uuid,
    p_ttl_ms bigint,
    p_clear_ttl boolean,
    p_tags text[],
    p_pinned boolean,
    p_quarantined boolean
)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_exact_key bytea;
begin
    update entry e
    set expires_at = case
            when p_clear_ttl then null
            when p_ttl_ms is not null then now() + p_ttl_ms * interval '1 millisecond'
            else e.expires_at
        end,
        tags = coalesce(p_tags, e.tags),
        pinned = coalesce(p_pinned, e.pinned),
        quarantined_at = case p_quarantined
            when true then coalesce(e.quarantined_at, now())
            when false then null
            else e.quarantined_at
        end
    where e.tenant_id = p_tenant_id
      and e.entry_id = p_entry_id
      and e.epoch = (
          select c.epoch
          from cache c
          where c.cache_id = e.cache_id
            and c.cache_id = p_cache_id
      )
    returning e.exact_key into v_exact_key;

    if not found then
        raise exception 'there is no such entry'
            using errcode = 'SC405';
    end if;

    if not p_pinned then
        update entry_usage
        set rank = '-infinity'
        where tenant_id = p_tenant_id
          and entry_id = p_entry_id;
    end if;

    insert into audit_log (tenant_id, cache_id, action, detail)
    values (
        p_tenant_id, p_cache_id, 'change_entry',
        jsonb_strip_nulls(jsonb_build_object(
            'entry_id', p_entry_id,
            'ttl_ms', p_ttl_ms,
            'pinned', p_pinned,
            'quarantined', p_quarantined
        ))
    );

    perform drop_aliases(p_tenant_id, array[p_entry_id]);
    return record_invalidation(p_cache_id, v_exact_key);
end
$$;

comment on function semcache.change_entry(bigint, bigint, uuid, bigint, boolean, text[], boolean, boolean) is
    'Changes lifetime, tags, pin or quarantine of an entry and returns the invalidation''s number.';
revoke all on function semcache.change_entry(bigint, bigint, uuid, bigint, boolean, text[], boolean, boolean) from public;
grant execute on function semcache.change_entry(bigint, bigint, uuid, bigint, boolean, text[], boolean, boolean)
    to semcache_app, semcache_worker;
