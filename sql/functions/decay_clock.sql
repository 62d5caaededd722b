-- A moment on the scale of decayed weights: the log2 of what one visit at that moment weighs beside one at the start of
-- 2025. All weights fade by half in a day, so they are added as they are and idle rows need no rescoring.
-- Caller: fold_requests and the queries over the request graph. It is one plain expression, so that it is inlined.

create or replace function semcache.decay_clock(p_at timestamptz)
returns double precision
language sql
immutable parallel safe
as $$
    select extract(epoch from p_at - timestamptz '2025-01-01 00:00:00+00')::double precision / 86400
$$;

comment on function semcache.decay_clock(timestamptz) is
    'log2 of the weight of one visit at this moment; a day is one unit.';
revoke all on function semcache.decay_clock(timestamptz) from public;
grant execute on function semcache.decay_clock(timestamptz) to semcache_app, semcache_worker;
