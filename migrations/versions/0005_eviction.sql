-- Eviction: what each entry takes and is worth, how full each cache is, and what was evicted lately.

alter table tenant
    add column max_entries bigint check (max_entries > 0),
    add column max_bytes bigint check (max_bytes > 0);

comment on column tenant.max_entries is 'Most entries of all its caches together; null: no limit.';
comment on column tenant.max_bytes is 'Most bytes of all its caches together, counted as cache_size does; null: no limit.';

alter table entry_usage
    add column cache_id bigint references cache,
    add column bytes integer not null default 0,
    add column weight real not null default 0,
    add column score double precision not null default 0,
    add column uses smallint not null default 0,
    add column returned boolean not null default false,
    add column rank double precision not null default '-infinity';

comment on table entry_usage is 'How often entries were served, and where they stand in the order of eviction. Narrow, and a hit touches no index, so that updates stay in the page (HOT).';
comment on column entry_usage.cache_id is 'The cache that the entry is in.';
comment on column entry_usage.bytes is 'What the entry takes: answer, prompt, vector, and a kilobyte for its rows and indexes.';
comment on column entry_usage.weight is 'log2 of what its answer cost the model, in milliseconds, for each byte.';
comment on column entry_usage.score is 'log2 of its uses, each worth half of one that is made a half-life later, by the cache''s clock.';
comment on column entry_usage.uses is 'Hits since it was last looked at for eviction, 3 at most: for s3-fifo.';
comment on column entry_usage.returned is 'It had been evicted and was asked for again: the eviction was wrong.';
comment on column entry_usage.rank is 'Its place in the order of eviction when it was last looked at. It has not sunk since, so the index gives candidates in order; -infinity: not looked at yet.';

create table cache_size (
    cache_id bigint primary key references cache,
    tenant_id bigint not null references tenant,
    entries bigint not null default 0,
    bytes bigint not null default 0,
    stored bigint not null default 0,
    clocked bigint not null default 0,
    clock double precision not null default 0,
    half_life real not null default 4 check (half_life > 0),
    ranked_by text,
    evicted bigint not null default 0,
    evicted_bytes bigint not null default 0,
    evicted_at timestamptz
);

comment on table cache_size is 'What each cache holds, dead entries included, and how it was evicted from. A worker adds what cache_change says.';
comment on column cache_size.cache_id is 'The cache.';
comment on column cache_size.tenant_id is 'The tenant that owns the cache.';
comment on column cache_size.entries is 'How many entries it holds.';
comment on column cache_size.bytes is 'What they take, as entry_usage.bytes.';
comment on column cache_size.stored is 'How many entries were ever stored.';
comment on column cache_size.clocked is 'How many of them the clock has counted.';
comment on column cache_size.clock is 'Half-lives of the cache: it goes on by one while half_life times as many entries are stored as fit.';
comment on column cache_size.half_life is 'In how many turnovers of the cache a use loses half of its worth; a worker learns it from the request log.';
comment on column cache_size.ranked_by is 'The policy by which entry_usage.rank stands.';
comment on column cache_size.evicted is 'How many entries were evicted.';
comment on column cache_size.evicted_bytes is 'What they took.';
comment on column cache_size.evicted_at is 'When it was last evicted from.';

create table cache_change (
    cache_id bigint not null,
    tenant_id bigint not null references tenant,
    entries integer not null,
    bytes bigint not null,
    stored integer not null
);

comment on table cache_change is 'What stores and removals change of cache_size: rows that are only added, so that no store waits for another.';
comment on column cache_change.cache_id is 'The cache.';
comment on column cache_change.tenant_id is 'The tenant that owns the cache.';
comment on column cache_change.entries is 'Entries more, or fewer.';
comment on column cache_change.bytes is 'Bytes more, or fewer.';
comment on column cache_change.stored is 'Entries stored.';

create table evicted (
    cache_id bigint not null references cache,
    exact_key bytea not null check (octet_length(exact_key) = 32),
    tenant_id bigint not null references tenant,
    score double precision not null,
    tick bigint not null,
    primary key (cache_id, exact_key)
);

create index evicted_tick on evicted (cache_id, tick);

comment on table evicted is 'Requests whose entries were evicted lately: one that comes back goes on with its score. Kept while four times as many entries are stored as the cache holds.';
comment on column evicted.cache_id is 'The cache.';
comment on column evicted.exact_key is 'SHA-256 of the whole canonical request.';
comment on column evicted.tenant_id is 'The tenant that owns the cache.';
comment on column evicted.score is 'entry_usage.score at the end.';
comment on column evicted.tick is 'cache_size.stored at the end.';

do $$
declare
    v_table text;
begin
    foreach v_table in array array['cache_size', 'cache_change', 'evicted'] loop
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

grant select on cache_size to semcache_app;
grant insert on cache_change to semcache_app;
grant select, delete on evicted to semcache_app;
grant select, insert, update on cache_size to semcache_worker;
grant select, insert, delete on cache_change to semcache_worker;
grant select, insert, update, delete on evicted to semcache_worker;
