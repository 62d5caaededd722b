-- Delete the entries of a cache that fit a filter, or count them.
-- Caller: bulk DELETE of the data API. Locks: the cache's row, so that no answer from before is stored meanwhile; the
-- rows, then record_invalidation's for the whole cache.
-- Bound: the cache. Errors: SC001 for an empty filter. A null or empty part of the filter does not narrow.
-- Counts what the listing shows (current epoch, not expired); dead rows that fit go too, uncounted.

create or replace function semcache.delete_entries(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_attributes jsonb,
    p_tags text[],
    p_model text,
    p_older_than timestamptz,
    p_dry_run boolean
)
returns table (deleted bigint, invalidation_id bigint)
language plpgsql
set search_path from current
as $$
declare
    v_attributes jsonb := nullif(p_attributes, '{}');
    v_tags text[] := nullif(p_tags, '{}');
    v_ids uuid[];
begin
    if num_nonnulls(v_attributes, v_tags, p_model, p_older_than) = 0 then
        raise exception 'a delete needs a filter'
            using errcode = 'SC001';
    end if;

    if not p_dry_run then
        update cache c
        set changes = c.changes + 1
        where c.tenant_id = p_tenant_id
          and c.cache_id = p_cache_id;
    end if;

    select array_agg(e.entry_id), count(*) filter (where e.epoch = c.epoch and (e.expires_at is null or e.expires_at > now()))
    into v_ids, deleted
    from entry e
    join cache c using (cache_id)
    join scope s using (scope_id)
    join model m using (model_id)
    where e.tenant_id = p_tenant_id
      and e.cache_id = p_cache_id
      and (v_attributes is null or e.attributes @> v_attributes)
      and (v_tags is null or e.tags && v_tags)
      and (p_model is null or m.name = p_model)
      and (p_older_than is null or e.created_at < p_older_than);

    if not p_dry_run then
        perform forget_requests(p_tenant_id, coalesce(v_ids, '{}'));
        perform remove_entries(p_tenant_id, coalesce(v_ids, '{}'));

        insert into audit_log (tenant_id, cache_id, action, detail)
        values (p_tenant_id, p_cache_id, 'delete_entries', jsonb_build_object('deleted', deleted));

        invalidation_id := record_invalidation(p_cache_id, null);
    end if;
    return next;
end
$$;

comment on function semcache.delete_entries(bigint, bigint, jsonb, text[], text, timestamptz, boolean) is
    'Deletes, or with p_dry_run only counts, the entries of a cache that fit every given part of the filter (any of the tags).';
revoke all on function semcache.delete_entries(bigint, bigint, jsonb, text[], text, timestamptz, boolean) from public;
grant execute on function semcache.delete_entries(bigint, bigint, jsonb, text[], text, timestamptz, boolean)
    to semcache_app, semcache_worker;
