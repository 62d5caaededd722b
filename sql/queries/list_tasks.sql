-- The workers' tasks as metrics show them. seconds: how long the last run took; detail: what it did; ended: when it ended, by Unix time.
select
    t.name,
    t.outcome,
    t.failures,
    t.detail,
    extract(epoch from t.ended_at)::float8 as ended,
    extract(epoch from t.ended_at - t.started_at)::float8 as seconds
from semcache.task t
order by t.name
