-- The sum of two weights of which both are log2: s' = max(s, t) + log2(1 + 2^-|s - t|).
-- Caller: fold_requests, admit_entry, record_requests. It is one plain expression, so that it is inlined.

create or replace function semcache.add_decayed(p_a double precision, p_b double precision)
returns double precision
language sql
immutable parallel safe
as $$
    select greatest(p_a, p_b) + ln(1 + power(2::double precision, -least(abs(p_a - p_b), 1000))) / ln(2::double precision)
$$;

comment on function semcache.add_decayed(double precision, double precision) is
    'The log2 of the sum of two weights given as log2; not for two that are both minus infinity.';
revoke all on function semcache.add_decayed(double precision, double precision) from public;
grant execute on function semcache.add_decayed(double precision, double precision) to semcache_app, semcache_worker;
