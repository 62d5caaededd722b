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
comment on column semcache.tasks.state is 'running, waiting, worker lost: the lease ran out and another takes it, or overdue.';
comment on column semcache.tasks.outcome is 'Of the last run: done, failed, or stopped with its worker.';
comment on column semcache.tasks.failures is 'Runs in a row that failed or were killed: each doubles the wait.';
comment on column semcache.tasks.took is 'How long the last run took; null: it runs.';
comment on column semcache.tasks.due_in is 'Time to the next run; negative: it is due, or runs.';
comment on column semcache.tasks.detail is 'What the last run did, or its error.';
comment on column semcache.tasks.holder is 'The worker that did it last.';
grant select on semcache.tasks to semcache_app, semcache_worker;
