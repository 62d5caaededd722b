-- The worker's periodic tasks, each done by whichever worker holds its lease.

create table task (
    name text primary key,
    holder uuid,
    leased_until timestamptz,
    started_at timestamptz,
    ended_at timestamptz,
    outcome text check (outcome in ('running', 'done', 'failed', 'stopped')),
    detail jsonb not null default '{}',
    failures integer not null default 0,
    next_due timestamptz not null default now()
);

comment on table task is 'The periodic tasks of the workers: one worker does each, under a lease that it renews while it runs.';
comment on column task.name is 'What is done.';
comment on column task.holder is 'The worker that does it, or did it last.';
comment on column task.leased_until is 'While this lies ahead no other worker takes the task; a killed worker''s lease runs out.';
comment on column task.started_at is 'When the last run began.';
comment on column task.ended_at is 'When the last run ended; null while it lasts, or where its worker was killed.';
comment on column task.outcome is 'running, done, failed, or stopped: its worker was told to end.';
comment on column task.detail is 'What the last run to end did, or why it failed.';
comment on column task.failures is 'Runs in a row that failed or were killed: each doubles the wait.';
comment on column task.next_due is 'When the task is to be done again.';
comment on table lease is 'Who may do something until when: a replica trust its memory (name replica:…), a replica ask the model for all (name flight:…).';

delete from lease
where name like 'task:%';

grant select on task to semcache_app;
grant select, insert, update on task to semcache_worker;
