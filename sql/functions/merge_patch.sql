-- A JSON Merge Patch (RFC 7396): keys of the patch replace those of the target, objects key by key, null removes.
-- Caller: change_policy. Locks: none. Bound: the keys of both. Errors: none.

create or replace function semcache.merge_patch(p_target jsonb, p_patch jsonb)
returns jsonb
language plpgsql
immutable
set search_path from current
as $$
begin
    if jsonb_typeof(p_patch) is distinct from 'object' then
        return p_patch;
    end if;

    return (
        select coalesce(
            jsonb_object_agg(
                coalesce(t.key, p.key),
                case when p.key is null then t.value else merge_patch(t.value, p.value) end
            ),
            '{}'
        )
        from jsonb_each(case jsonb_typeof(p_target) when 'object' then p_target else '{}' end) t
        full join jsonb_each(p_patch) p on p.key = t.key
        where p.value is distinct from 'null'
    );
end
$$;

comment on function semcache.merge_patch(jsonb, jsonb) is
    'What a JSON Merge Patch (RFC 7396) makes of a target.';
revoke all on function semcache.merge_patch(jsonb, jsonb) from public;
grant execute on function semcache.merge_patch(jsonb, jsonb) to semcache_app, semcache_worker;
