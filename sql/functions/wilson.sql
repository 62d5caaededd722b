-- Wilson's interval of a share, 95 percent, each side by itself at 97.5: where the true share lies, as far as p_count of
-- p_total tells. It takes observations for independent; of repeats of one question it knows less than it says.
-- Caller: the views for people. Bound: none. Idempotent.

create or replace function semcache.wilson(p_count bigint, p_total bigint, out low double precision, out high double precision)
language sql
immutable
parallel safe
as $$
    select
        greatest(0, (w.middle - w.spread) / w.scale),
        least(1, (w.middle + w.spread) / w.scale)
    from (
        select
            p_count::float8 / p_total + z.z2 / (2 * p_total) as middle,
            sqrt(z.z2 * (p_count::float8 * (p_total - p_count) / (p_total::float8 ^ 3) + z.z2 / (4 * p_total::float8 ^ 2))) as spread,
            1 + z.z2 / p_total as scale
        from (
            select 1.959963984540054 ^ 2 as z2
        ) z
        where p_total > 0
    ) w
$$;

comment on function semcache.wilson(bigint, bigint) is 'Wilson''s 95 percent interval of a share; nulls for none of none.';
revoke all on function semcache.wilson(bigint, bigint) from public;
grant execute on function semcache.wilson(bigint, bigint) to semcache_app, semcache_worker;
