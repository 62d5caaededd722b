-- The first schema: tenants, caches, request identity, entries with their vectors and answers, and coherence.

create function current_tenant() returns bigint
language sql stable parallel safe
as $$
    select nullif(current_setting('semcache.tenant_id', true), '')::bigint
$$;

comment on function current_tenant() is 'The tenant of this session, from the setting semcache.tenant_id; null when none is set, and then row-level security shows nothing.';
revoke all on function current_tenant() from public;
grant execute on function current_tenant() to semcache_app, semcache_worker;

comment on table alembic_version is 'The revision that the schema is at.';
comment on column alembic_version.version_num is 'Revision, as in the folder migrations/versions.';

create table tenant (
    tenant_id bigint generated always as identity primary key,
    name text not null unique check (name ~ '^[A-Za-z0-9_.-]{1,64}$'),
    created_at timestamptz not null default now()
);

comment on table tenant is 'Who owns data. Nothing ever crosses tenants.';
comment on column tenant.tenant_id is 'Number of the tenant, in every row of its data.';
comment on column tenant.name is 'Name as given to `pgsemcache keys create --tenant`.';
comment on column tenant.created_at is 'When the tenant was made.';

create table api_key (
    api_key_id bigint generated always as identity primary key,
    tenant_id bigint not null references tenant,
    key_hash bytea not null unique check (octet_length(key_hash) = 32),
    hint text not null,
    created_at timestamptz not null default now(),
    revoked_at timestamptz
);

comment on table api_key is 'Keys that open a tenant. Only the SHA-256 of a key is kept.';
comment on column api_key.api_key_id is 'Number of the key, for `pgsemcache keys revoke`.';
comment on column api_key.tenant_id is 'The tenant that the key opens.';
comment on column api_key.key_hash is 'SHA-256 of the key.';
comment on column api_key.hint is 'The first characters of the key, to tell keys apart.';
comment on column api_key.created_at is 'When the key was made.';
comment on column api_key.revoked_at is 'When the key stopped opening anything; null while it is good.';

create table cache (
    cache_id bigint generated always as identity primary key,
    tenant_id bigint not null references tenant,
    name text not null check (name ~ '^[A-Za-z0-9_.:-]{1,128}$' and name not in ('.', '..')),
    policy jsonb not null default '{}',
    epoch bigint not null default 0,
    changes bigint not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    deleted_at timestamptz
);

create unique index cache_name on cache (tenant_id, name) where deleted_at is null;
create index cache_deleted on cache (deleted_at) where deleted_at is not null;

comment on table cache is 'A named store inside a tenant, with its policy.';
comment on column cache.cache_id is 'Number of the cache.';
comment on column cache.tenant_id is 'The tenant that owns the cache.';
comment on column cache.name is 'The cacheId of the REST API.';
comment on column cache.policy is 'What the operator set; keys that are absent have the defaults of the release.';
comment on column cache.epoch is 'Counts flushes. Only entries of the current epoch are served.';
comment on column cache.changes is 'Counts flushes, changes of the policy and bulk deletes. An answer that was asked for before the last of them is not stored.';
comment on column cache.created_at is 'When the cache was made.';
comment on column cache.updated_at is 'When its policy last changed or it was last flushed.';
comment on column cache.deleted_at is 'When the cache was deleted; its rows are removed in the background.';

create table embedder (
    embedder_id integer generated always as identity primary key,
    kind text not null check (kind in ('local', 'remote')),
    name text not null,
    revision text not null,
    dimensions integer not null check (dimensions between 1 and 4000),
    max_tokens integer check (max_tokens > 0),
    probe real[],
    created_at timestamptz not null default now(),
    unique (name, revision, dimensions)
);

comment on table embedder is 'A model that turns texts into vectors. Each row is a generation: vectors of two rows are never compared.';
comment on column embedder.embedder_id is 'Number of the embedder, and of its partition of embedding.';
comment on column embedder.kind is 'local: run in the service; remote: an OpenAI-compatible /v1/embeddings.';
comment on column embedder.name is 'Name of the model.';
comment on column embedder.revision is 'SHA-256 over the files of a local model, or over the probe of a remote one.';
comment on column embedder.dimensions is 'Length of its vectors.';
comment on column embedder.max_tokens is 'Longest text that it reads, in its own tokens; null where the server does not say.';
comment on column embedder.probe is 'Vectors of fixed texts, one after the other: they show whether a remote model is still the same.';
comment on column embedder.created_at is 'When the service first met this embedder.';

create table model (
    model_id bigint generated always as identity primary key,
    tenant_id bigint not null references tenant,
    model_key bytea not null check (octet_length(model_key) = 32),
    name text not null,
    revision text,
    tokenizer text,
    chat_template text,
    dtype text,
    quantization text,
    kv_cache_dtype text,
    engine_version text,
    created_at timestamptz not null default now(),
    unique (tenant_id, model_key)
);

comment on table model is 'A served model as an identity: answers of two rows are never mixed.';
comment on column model.model_id is 'Number of the model.';
comment on column model.tenant_id is 'The tenant that used the model.';
comment on column model.model_key is 'SHA-256 of the canonical form of the other columns.';
comment on column model.name is 'Name in the request.';
comment on column model.revision is 'Declared revision of the weights, or the one that a drifted probe opened.';
comment on column model.tokenizer is 'Hash of the tokenizer, or of its effect on fixed texts.';
comment on column model.chat_template is 'Hash of the chat template, or of its effect on fixed messages.';
comment on column model.dtype is 'Number format of the weights.';
comment on column model.quantization is 'Quantization of the weights.';
comment on column model.kv_cache_dtype is 'Number format of the key-value cache.';
comment on column model.engine_version is 'Version of the serving engine.';
comment on column model.created_at is 'When this identity was first met.';

create table sampling_config (
    sampling_config_id bigint generated always as identity primary key,
    tenant_id bigint not null references tenant,
    config_key bytea not null check (octet_length(config_key) = 32),
    config json not null,
    created_at timestamptz not null default now(),
    unique (tenant_id, config_key)
);

comment on table sampling_config is 'Every field of a request that changes the output distribution.';
comment on column sampling_config.sampling_config_id is 'Number of the config.';
comment on column sampling_config.tenant_id is 'The tenant that used the config.';
comment on column sampling_config.config_key is 'SHA-256 of the canonical form.';
comment on column sampling_config.config is 'The canonical form: an absent field is absent, since the server decides what it means.';
comment on column sampling_config.created_at is 'When this config was first met.';

create table scope (
    scope_id bigint generated always as identity primary key,
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache,
    scope_key bytea not null check (octet_length(scope_key) = 32),
    model_id bigint not null references model,
    sampling_config_id bigint not null references sampling_config,
    canonical_version smallint not null,
    parts jsonb not null,
    ann_index text check (ann_index in ('ivfflat', 'hnsw')),
    ann_rows bigint,
    created_at timestamptz not null default now(),
    unique (cache_id, scope_key)
);

comment on table scope is 'What must match exactly before similarity may speak: cache, model, sampling config, and everything in the request but the last user text.';
comment on column scope.scope_id is 'Number of the scope.';
comment on column scope.tenant_id is 'The tenant that owns the scope.';
comment on column scope.cache_id is 'The cache that the scope is in.';
comment on column scope.scope_key is 'SHA-256 of the canonical form of the whole scope.';
comment on column scope.model_id is 'The model that answers in this scope.';
comment on column scope.sampling_config_id is 'The sampling config of this scope.';
comment on column scope.canonical_version is 'Version of the canonical form that made the key.';
comment on column scope.parts is 'SHA-256 of each further part: system prompt, history, tools and so on. Two scopes are compared part by part.';
comment on column scope.ann_index is 'Kind of the approximate index over this scope''s vectors; null while it is small and scanned exactly.';
comment on column scope.ann_rows is 'How many rows the approximate index was built over.';
comment on column scope.created_at is 'When the scope was first met.';

create table output (
    output_id bigint generated always as identity primary key,
    tenant_id bigint not null references tenant,
    payload json not null,
    bytes integer not null,
    prompt_tokens integer,
    completion_tokens integer,
    cost_ms real,
    created_at timestamptz not null default now()
);

comment on table output is 'Answers. One serves streaming and non-streaming callers; aliases share one.';
comment on column output.output_id is 'Number of the answer.';
comment on column output.tenant_id is 'The tenant that owns the answer.';
comment on column output.payload is 'The answer with its format version. Type json, since an answer may hold U+0000 or half a surrogate pair.';
comment on column output.bytes is 'Size of the payload as text, in bytes.';
comment on column output.prompt_tokens is 'Prompt tokens that the model counted; null where nobody said.';
comment on column output.completion_tokens is 'Completion tokens that the model counted; null where nobody said.';
comment on column output.cost_ms is 'Time that the model took for it, in milliseconds.';
comment on column output.created_at is 'When the answer was made.';

create table entry (
    entry_id uuid primary key default gen_random_uuid(),
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache,
    scope_id bigint not null references scope,
    output_id bigint not null references output,
    epoch bigint not null,
    exact_key bytea not null check (octet_length(exact_key) = 32),
    attributes_key bytea not null check (octet_length(attributes_key) = 32),
    variant smallint not null default 0,
    prompt text not null,
    prompt_verbatim json,
    attributes jsonb not null default '{}',
    tags text[] not null default '{}',
    provenance text not null check (provenance in ('upstream', 'client', 'prefetch', 'import')),
    pinned boolean not null default false,
    quarantined_at timestamptz,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    unique (cache_id, exact_key, attributes_key, variant)
);

create index entry_listing on entry (cache_id, epoch, created_at, entry_id);
create index entry_expiry on entry (expires_at) where expires_at is not null;
create index entry_output on entry (output_id);
create index entry_scope on entry (scope_id);
create index entry_tags on entry using gin (tags);
create index entry_attributes on entry using gin (attributes jsonb_path_ops);

comment on table entry is 'One prompt with its answer, inside a scope.';
comment on column entry.entry_id is 'The entryId of the REST API, without dashes there.';
comment on column entry.tenant_id is 'The tenant that owns the entry.';
comment on column entry.cache_id is 'The cache that the entry is in.';
comment on column entry.scope_id is 'The scope that the entry may serve.';
comment on column entry.output_id is 'The answer.';
comment on column entry.epoch is 'The cache''s epoch when it was stored; a later flush makes it dead.';
comment on column entry.exact_key is 'SHA-256 of the whole canonical request.';
comment on column entry.attributes_key is 'SHA-256 of the attributes: the same prompt under other attributes is another entry.';
comment on column entry.variant is 'Number of the answer among several kept for one prompt.';
comment on column entry.prompt is 'The text that was embedded, or the start of what was asked; with U+FFFD for what Postgres text cannot hold.';
comment on column entry.prompt_verbatim is 'The prompt as a JSON string, only where the column prompt could not hold it unchanged.';
comment on column entry.attributes is 'Names and values that the caller gave, for filters.';
comment on column entry.tags is 'Words that the caller gave, for bulk deletes.';
comment on column entry.provenance is 'Who made the answer: the model behind the proxy, a client, the prefetcher, an import.';
comment on column entry.pinned is 'Never evicted; it still expires.';
comment on column entry.quarantined_at is 'When the answer was called wrong; it is not served since.';
comment on column entry.created_at is 'When the answer was stored: Age counts from here.';
comment on column entry.expires_at is 'When the answer stops being served; no hit extends it. Null: never.';

create table embedding (
    tenant_id bigint not null references tenant,
    embedder_id integer not null references embedder,
    scope_id bigint not null,
    entry_id uuid not null references entry on delete cascade,
    vector halfvec not null,
    primary key (entry_id, embedder_id)
) partition by list (embedder_id);

create index embedding_scope on embedding (scope_id);

comment on table embedding is 'Vectors of entries, one partition for each embedder. Rows never change: apart from the texts, so that an exact scan reads little.';
comment on column embedding.tenant_id is 'The tenant that owns the vector.';
comment on column embedding.embedder_id is 'The embedder that made the vector.';
comment on column embedding.scope_id is 'The scope of the entry.';
comment on column embedding.entry_id is 'The entry whose prompt it is.';
comment on column embedding.vector is 'Unit length, so that the inner product is the cosine similarity.';

create table entry_usage (
    entry_id uuid primary key references entry on delete cascade,
    tenant_id bigint not null references tenant,
    hits bigint not null default 0,
    last_hit_at timestamptz
) with (fillfactor = 70);

comment on table entry_usage is 'How often entries were served. Narrow and without further indexes, so that updates stay in the page (HOT).';
comment on column entry_usage.entry_id is 'The entry.';
comment on column entry_usage.tenant_id is 'The tenant that owns the entry.';
comment on column entry_usage.hits is 'How often it was served.';
comment on column entry_usage.last_hit_at is 'When it was last served.';

create table request_log (
    request_log_id bigint generated always as identity primary key,
    at timestamptz not null,
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache,
    scope_key bytea,
    session text,
    turn bytea,
    entry_id uuid,
    outcome text not null,
    reason text not null,
    similarity real,
    latency_ms real not null,
    stages jsonb not null default '{}',
    tokens_saved integer not null default 0,
    tokens_spent integer not null default 0,
    cost_ms real
);

create index request_log_cache on request_log (cache_id, at);
create index request_log_turn on request_log (turn) where turn is not null;
create index request_log_at on request_log using brin (at);

comment on table request_log is 'One row for each lookup. Written in batches; no prompt stands here.';
comment on column request_log.request_log_id is 'Number of the row.';
comment on column request_log.at is 'When the request came.';
comment on column request_log.tenant_id is 'Who asked.';
comment on column request_log.cache_id is 'The cache that was asked.';
comment on column request_log.scope_key is 'SHA-256 of the scope; null where the request was passed by.';
comment on column request_log.session is 'The session that the caller named or that the conversation shows.';
comment on column request_log.turn is 'SHA-256 of the last user message with all before it: who continues from here is in the same session.';
comment on column request_log.entry_id is 'The entry that was served, or that the fresh answer became.';
comment on column request_log.outcome is 'hit, semantic_hit, miss, bypass, refresh, coalesced, stale, error, or shadow: only decided, and the model asked.';
comment on column request_log.reason is 'Why, in one word of a closed set.';
comment on column request_log.similarity is 'Cosine similarity of the served or nearest entry.';
comment on column request_log.latency_ms is 'Time that the cache took, in milliseconds.';
comment on column request_log.stages is 'Milliseconds of each stage.';
comment on column request_log.tokens_saved is 'Tokens that the model would have counted for a served answer.';
comment on column request_log.tokens_spent is 'Tokens that the model counted for a fresh answer.';
comment on column request_log.cost_ms is 'Time that the model took for a fresh answer, in milliseconds.';

create table observation (
    observation_id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache,
    entry_id uuid not null,
    similarity real,
    verdict text not null check (verdict in ('correct', 'wrong', 'stale')),
    source text not null check (source in ('feedback', 'exploration', 'judge', 'audit')),
    prompt text,
    prompt_verbatim json
);

create index observation_cache on observation (cache_id, at);
create index observation_entry on observation (entry_id);

comment on table observation is 'Whether an answer was right for a request. All learning reads these rows.';
comment on column observation.observation_id is 'Number of the observation.';
comment on column observation.at is 'When it was made.';
comment on column observation.tenant_id is 'The tenant that it belongs to.';
comment on column observation.cache_id is 'The cache that it is about.';
comment on column observation.entry_id is 'The entry that it is about, also when that is gone.';
comment on column observation.similarity is 'Similarity between the request and the entry''s prompt; null where unknown.';
comment on column observation.verdict is 'correct, wrong for the request, or stale: once right.';
comment on column observation.source is 'Who says so. Only random sources (exploration, audit) are free of selection.';
comment on column observation.prompt is 'The prompt of the request, where the caller gave it; with U+FFFD for what Postgres text cannot hold.';
comment on column observation.prompt_verbatim is 'The prompt as a JSON string, only where the column prompt could not hold it unchanged.';

create table lease (
    name text primary key,
    holder uuid not null,
    expires_at timestamptz not null,
    confirmed bigint not null default 0
);

comment on table lease is 'Who may do something until when: a replica trust its memory (name replica:…), a worker run a task (name task:…), a replica ask the model for all (name flight:…).';
comment on column lease.name is 'What is leased.';
comment on column lease.holder is 'The process that holds it.';
comment on column lease.expires_at is 'When it ends unless renewed, by the database''s clock.';
comment on column lease.confirmed is 'For a replica: the last invalidation that its memory has followed.';

create table invalidation (
    invalidation_id bigint primary key,
    cache_id bigint,
    exact_key bytea,
    at timestamptz not null default now()
);

create sequence invalidation_clock owned by invalidation.invalidation_id;
create index invalidation_at on invalidation (at);

comment on table invalidation is 'What replicas must forget, in the order of commits. Kept for ten minutes; who is further behind forgets everything.';
comment on column invalidation.invalidation_id is 'Position in the order, from invalidation_clock.';
comment on column invalidation.cache_id is 'The cache concerned; null: all, and all API keys.';
comment on column invalidation.exact_key is 'The request concerned; null: the whole cache with its policy.';
comment on column invalidation.at is 'When it was recorded.';
comment on sequence invalidation_clock is 'Drawn under an advisory lock that lasts to the commit, so that numbers follow commits.';

create table audit_log (
    audit_log_id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    tenant_id bigint not null references tenant,
    cache_id bigint,
    action text not null,
    detail jsonb not null default '{}'
);

create index audit_log_tenant on audit_log (tenant_id, at);

comment on table audit_log is 'What was changed by hand or by rule: flushes, deletes, policies, keys, quarantines. No prompt stands here.';
comment on column audit_log.audit_log_id is 'Number of the row.';
comment on column audit_log.at is 'When it happened.';
comment on column audit_log.tenant_id is 'The tenant concerned.';
comment on column audit_log.cache_id is 'The cache concerned; null where it is about the tenant.';
comment on column audit_log.action is 'What happened, in one word.';
comment on column audit_log.detail is 'Counts, ids and settings.';

create table sql_file (
    path text primary key,
    checksum bytea not null,
    applied_at timestamptz not null default now()
);

comment on table sql_file is 'The files of functions and views as last applied. A file whose checksum differs is applied again.';
comment on column sql_file.path is 'Path below the folder sql.';
comment on column sql_file.checksum is 'SHA-256 of the file.';
comment on column sql_file.applied_at is 'When it was applied.';

-- Row-level security: the app sees one tenant, the worker all; an unset tenant sees nothing.

do $$
declare
    v_table text;
begin
    foreach v_table in array array[
        'cache', 'model', 'sampling_config', 'scope', 'output', 'entry', 'embedding', 'entry_usage',
        'request_log', 'observation', 'audit_log'
    ] loop
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

grant usage on schema semcache to semcache_app, semcache_worker;
grant select on tenant, api_key, embedder, sql_file, alembic_version to semcache_app, semcache_worker;
grant insert on tenant, api_key to semcache_app;
grant update (revoked_at) on api_key to semcache_app;
grant select, insert, update, delete on cache, scope, entry, output, entry_usage, lease, invalidation
    to semcache_app, semcache_worker;
grant select, insert, delete on embedding, request_log to semcache_app, semcache_worker;
grant update on request_log to semcache_worker;
grant select, insert on model, sampling_config, observation, audit_log to semcache_app, semcache_worker;
grant usage on sequence invalidation_clock to semcache_app, semcache_worker;
