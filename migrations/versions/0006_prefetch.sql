-- Prefetch: requests that can be asked again, and what was asked ahead with what came of it.

create table request_body (
    node_id bigint primary key references node on delete cascade,
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache on delete cascade,
    endpoint text not null check (endpoint in ('chat', 'completions', 'responses', 'embeddings')),
    model text not null,
    model_key bytea not null check (octet_length(model_key) = 32),
    body json not null,
    tags text[] not null default '{}',
    ttl_ms bigint,
    tokens integer not null default 0,
    cost_ms real,
    kept_at timestamptz not null default now()
);

create index request_body_model on request_body (cache_id, model);

comment on table request_body is 'Requests that can be asked again, of caches whose policy has prefetch on. They hold what the users wrote, and go with the entry that is deleted by hand.';
comment on column request_body.node_id is 'The request, as a node of the request graph.';
comment on column request_body.tenant_id is 'The tenant whose request it is.';
comment on column request_body.cache_id is 'The cache that it was asked in.';
comment on column request_body.endpoint is 'The route of the OpenAI API.';
comment on column request_body.model is 'Name of the model in the request.';
comment on column request_body.model_key is 'The revision of the model that answered last, as in model.';
comment on column request_body.body is 'The body without what does not change the answer: stream, metadata, session and the like. No header is kept.';
comment on column request_body.tags is 'Tags that its entry is to have.';
comment on column request_body.ttl_ms is 'Lifetime that the caller asked for; null: the policy''s.';
comment on column request_body.tokens is 'Tokens that the model counted for the last answer, prompt and completion.';
comment on column request_body.cost_ms is 'Time that the model took for the last answer, in milliseconds.';
comment on column request_body.kept_at is 'When the last answer was stored.';

create table prefetch (
    prefetch_id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache on delete cascade,
    node_id bigint not null,
    why text not null check (why in ('missing', 'expired', 'expiring', 'new_model')),
    measure text not null,
    chance real not null,
    score real not null,
    outcome text not null default 'asking' check (outcome in ('asking', 'stored', 'landed', 'failed', 'busy')),
    entry_id uuid,
    tokens integer not null,
    cost_ms real,
    hits integer not null default 0,
    first_hit_at timestamptz
);

create index prefetch_at on prefetch (at);
create index prefetch_node on prefetch (node_id, at);
create index prefetch_entry on prefetch (entry_id);

comment on table prefetch is 'Answers that were asked for ahead of their users, and whether those came.';
comment on column prefetch.prefetch_id is 'Number of the row.';
comment on column prefetch.at is 'When the model was asked.';
comment on column prefetch.tenant_id is 'The tenant whose budget it took.';
comment on column prefetch.cache_id is 'The cache that it is for.';
comment on column prefetch.node_id is 'What was asked, as a node of the request graph; that may be gone.';
comment on column prefetch.why is 'Why no stored answer would have done: missing, expired, expiring soon, or of an earlier revision of the model.';
comment on column prefetch.measure is 'The centrality that chose it.';
comment on column prefetch.chance is 'Chance, as estimated, that it is asked for while no stored answer would do.';
comment on column prefetch.score is 'What it was expected to save, in milliseconds of the model.';
comment on column prefetch.outcome is 'asking; stored; landed: a user had it stored meanwhile; failed; or busy: the model server turned it away, or nothing could be stored. One that stays asking was broken off.';
comment on column prefetch.entry_id is 'The entry that the answer became.';
comment on column prefetch.tokens is 'Tokens that the model counted; while it is asked, those of the last answer.';
comment on column prefetch.cost_ms is 'Time that the model took, in milliseconds.';
comment on column prefetch.hits is 'How often the entry was served.';
comment on column prefetch.first_hit_at is 'When it was served first.';

do $$
declare
    v_table text;
begin
    foreach v_table in array array['request_body', 'prefetch'] loop
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

grant select, insert, update, delete on request_body to semcache_app, semcache_worker;
grant insert (tenant_id, cache_id, request_key, exact_key), update (exact_key) on node to semcache_app;
grant select on prefetch to semcache_app;
grant select, insert, update, delete on prefetch to semcache_worker;
