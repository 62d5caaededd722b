-- Long work with progress: imports, exports, and vectors of another embedder.

create table job (
    job_id uuid primary key default gen_random_uuid(),
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache,
    kind text not null check (kind in ('import', 'export', 're-embed')),
    state text not null default 'queued' check (state in ('queued', 'running', 'done', 'failed', 'cancelled')),
    position jsonb,
    done bigint not null default 0,
    failed bigint not null default 0,
    total bigint not null,
    errors jsonb not null default '[]',
    holder uuid,
    leased_until timestamptz,
    created_at timestamptz not null default now(),
    touched_at timestamptz not null default now(),
    ended_at timestamptz
);

create index job_cache on job (cache_id, created_at);
create index job_open on job (touched_at) where state in ('queued', 'running');

comment on table job is 'Long work on a cache, done in batches: who does the next one holds a lease, and a batch counts with the place where the next begins.';
comment on column job.job_id is 'The jobId of the REST API, without dashes there.';
comment on column job.tenant_id is 'The tenant that owns the cache.';
comment on column job.cache_id is 'The cache that it works on.';
comment on column job.kind is 'import: its lines become entries; export: entries become its lines; re-embed: entries get vectors of the embedder that the worker has.';
comment on column job.state is 'queued, running, done, failed, or cancelled.';
comment on column job.position is 'Where the next batch begins; null: at the start.';
comment on column job.done is 'Lines or entries that are done.';
comment on column job.failed is 'Lines or entries that could not be done.';
comment on column job.total is 'How many there were at the start.';
comment on column job.errors is 'The first twenty that could not be done, each with its number and the rule; or why the job failed.';
comment on column job.holder is 'Who does the batch at hand, or did the last.';
comment on column job.leased_until is 'While this lies ahead nobody else takes a batch; the lease of one that was killed runs out.';
comment on column job.created_at is 'When it was asked for.';
comment on column job.touched_at is 'When its last batch began: jobs take turns.';
comment on column job.ended_at is 'When it was done, failed or cancelled. A week later it is removed.';

create table job_line (
    job_id uuid not null references job on delete cascade,
    number bigint not null,
    tenant_id bigint not null references tenant,
    line json not null,
    primary key (job_id, number)
);

comment on table job_line is 'What an import has yet to read, and what an export has written. Goes with its job.';
comment on column job_line.job_id is 'The job.';
comment on column job_line.number is 'Its place, from 1 on.';
comment on column job_line.tenant_id is 'The tenant that owns the job.';
comment on column job_line.line is 'One entry. Type json, since an answer may hold U+0000 or half a surrogate pair.';

do $$
declare
    v_table text;
begin
    foreach v_table in array array['job', 'job_line'] loop
        execute format('alter table %I enable row level security', v_table);
        execute format('alter table %I force row level security', v_table);
        execute format(
            'create policy own_tenant on %I using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()))',
            v_table
        );
        execute format('create policy worker on %I to semcache_worker using (true) with check (true)', v_table);
        execute format('comment on policy own_tenant on %I is %L', v_table, 'Only rows of the tenant in semcache.tenant_id.');
        execute format('comment on policy worker on %I is %L', v_table, 'The worker cares for all tenants.');
    end loop;
end
$$;

grant select, insert, update on job to semcache_app;
grant select, insert, update, delete on job to semcache_worker;
grant select, insert, delete on job_line to semcache_app, semcache_worker;
