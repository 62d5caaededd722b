-- What the workers do: each task, how its last run ended, and when the next is due.
create or replace view semcache.tasks
with (security_invoker = true)
as
select
    t.name as task,
    case
        when t.outcome = 'running' and t.leased_until < now() then 'worker lost'
        when t.outcome = 'running' then 'running'
        when t.next_due < now() - interval '1 minute' then 'overdue: no worker runs'
        else 'waiting'
    end as state,
    t.outcome,
    t.failures,
    t.started_at,
    t.ended_at - t.started_at as took,
    t.next_due - now() as due_in,
    t.detail,
    t.holder
from semcache.task t
order by t.name;

comment on view semcache.tasks is 'What the workers do: each task, how its last run ended, and when the next is due.';
grant select on semcache.tasks to semcache_app, semcache_worker;
