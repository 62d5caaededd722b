-- Note how a run ended and when the next is due: after the interval, give or take a tenth so that tasks spread; after
-- twice that for each failure in a row, to an hour at most; at once where the worker was told to end.
with ended as (
    update semcache.task t
    set ended_at = clock_timestamp(),
        leased_until = null,
        outcome = %(outcome)s,
        detail = %(detail)s,
        failures = case %(outcome)s when 'failed' then t.failures + 1 when 'done' then 0 else t.failures end,
        next_due = clock_timestamp() + case %(outcome)s
            when 'stopped' then interval '0'
            when 'done' then %(interval)s * (0.9 + random() * 0.2) * interval '1 second'
            else least(%(interval)s * 2.0 ^ least(t.failures + 1, 20), greatest(%(interval)s, 3600.0))
                * (0.9 + random() * 0.2) * interval '1 second'
        end
    where t.name = %(name)s
      and t.holder = %(holder)s
      and t.outcome = 'running'
    returning t.next_due
)
select
    set_config('synchronous_commit', 'off', true),
    extract(epoch from ended.next_due - clock_timestamp())::float8 as seconds
from ended
