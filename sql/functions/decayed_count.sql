-- What a decayed weight, given as its log2, is worth now: a count of which each time weighs half after a day.
-- Caller: requests_a_second and the views of the request graph. Rows of clocks that run ahead do not overflow.

create or replace function semcache.decayed_count(p_weight double precision)
returns double precision
language sql
stable parallel safe
as $$
    select power(2::double precision, least(greatest(p_weight - semcache.decay_clock(now()), -1000), 60))
$$;

comment on function semcache.decayed_count(double precision) is
    'What a decayed weight, given as its log2, is worth now.';
revoke all on function semcache.decayed_count(double precision) from public;
grant execute on function semcache.decayed_count(double precision) to semcache_app, semcache_worker;
