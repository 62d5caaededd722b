-- Note a verdict on an answer. wrong quarantines the entry, stale ends its life, before any time for which an expired answer
-- may be served; both at once, and its aliases go.
-- Caller: feedback of the data API. Locks: the row, then record_invalidation's. Bound: one entry.
-- Errors: SC405 when there is none, or it was flushed.

create or replace function semcache.record_feedback(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_entry_id uuid,
    p_verdict text,
    p_observation jsonb
)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_exact_key bytea;
begin
    update entry e
    set quarantined_at = case when p_verdict = 'wrong' then coalesce(e.quarantined_at, now()) else e.quarantined_at end,
        expires_at = case when p_verdict = 'stale' then least(e.expires_at, now() - interval '1 hour') else e.expires_at end
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

    perform record_observations(p_tenant_id, p_cache_id, jsonb_build_array(p_observation));

    if p_verdict = 'correct' then
        return null;
    end if;

    perform drop_aliases(p_tenant_id, array[p_entry_id]);
    return record_invalidation(p_cache_id, v_exact_key);
end
$$;

comment on function semcache.record_feedback(bigint, bigint, uuid, text, jsonb) is
    'Notes a verdict on an answer, as record_observations does; a wrong or stale one is not served any more. Returns the invalidation''s number, or null.';
revoke all on function semcache.record_feedback(bigint, bigint, uuid, text, jsonb) from public;
grant execute on function semcache.record_feedback(bigint, bigint, uuid, text, jsonb) to semcache_app, semcache_worker;
