-- Note what a new entry takes, and what it is worth: one whose request was evicted lately goes on with its score.
-- Caller: whatever makes an entry, in the same transaction. Locks: the row of evicted, if there is one. Bound: one entry.
-- A cost that nobody knows is taken as that of usual text, 5 ms a byte.

create or replace function semcache.admit_entry(
    p_tenant_id bigint,
    p_cache_id bigint,
    p_entry_id uuid,
    p_exact_key bytea,
    p_answer_bytes integer,
    p_other_bytes integer,
    p_cost_ms real
)
returns void
language plpgsql
set search_path from current
as $$
declare
    v_bytes integer := p_answer_bytes + p_other_bytes + 1024;
    v_clock double precision;
    v_score double precision;
begin
    v_clock := coalesce(
        (
            select z.clock
            from cache_size z
            where z.cache_id = p_cache_id
              and z.tenant_id = p_tenant_id
        ),
        0
    );

    delete from evicted g
    where g.cache_id = p_cache_id
      and g.tenant_id = p_tenant_id
      and g.exact_key = p_exact_key
    returning g.score into v_score;

    insert into entry_usage (entry_id, tenant_id, cache_id, bytes, weight, score, returned)
    values (
        p_entry_id, p_tenant_id, p_cache_id, v_bytes,
        ln(greatest(coalesce(p_cost_ms, 5 * p_answer_bytes), 1) / v_bytes) / ln(2.0::float8),
        case when v_score is null then v_clock else add_decayed(v_score, v_clock) end, v_score is not null
    );

    insert into cache_change (cache_id, tenant_id, entries, bytes, stored)
    values (p_cache_id, p_tenant_id, 1, v_bytes, 1);
end
$$;

comment on function semcache.admit_entry(bigint, bigint, uuid, bytea, integer, integer, real) is
    'Notes what a new entry takes (bytes of its answer, and of the rest) and what it is worth.';
revoke all on function semcache.admit_entry(bigint, bigint, uuid, bytea, integer, integer, real) from public;
grant execute on function semcache.admit_entry(bigint, bigint, uuid, bytea, integer, integer, real) to semcache_app, semcache_worker;
