-- The request graph: requests as nodes, which followed which in a session, and how central each is.

alter table request_log add column request_key bytea;
create index request_log_session on request_log (cache_id, session, at) where session is not null;

comment on column request_log.request_key is 'SHA-256 of the request whatever revision of its model answers it: the same question over all revisions and lives of its entry. Null where the request was passed by.';

create table log_reader (
    name text primary key,
    position bigint not null default 0
);

comment on table log_reader is 'How far each reader of request_log has come. Moved in the transaction that uses what was read.';
comment on column log_reader.name is 'Who reads.';
comment on column log_reader.position is 'The last request_log_id that it has read.';

insert into log_reader (name, position)
select 'request_graph', coalesce(pg_sequence_last_value(pg_get_serial_sequence('request_log', 'request_log_id')::regclass), 0);

create table node (
    node_id bigint generated always as identity primary key,
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache on delete cascade,
    request_key bytea not null check (octet_length(request_key) = 32),
    exact_key bytea check (octet_length(exact_key) = 32),
    visits double precision not null default '-infinity',
    starts double precision not null default '-infinity',
    seen bigint not null default 0,
    last_at timestamptz,
    unique (cache_id, request_key)
) with (fillfactor = 70);

create index node_exact on node (cache_id, exact_key);

comment on table node is 'Nodes of the request graph: a request, over all lives of its answer. Requests that one entry or one output serves are one node.';
comment on column node.node_id is 'Number of the node.';
comment on column node.tenant_id is 'The tenant whose request it is.';
comment on column node.cache_id is 'The cache that it was asked in.';
comment on column node.request_key is 'The request, as in request_log.';
comment on column node.exact_key is 'The request as the revision of the model knows it that answered last: where its entry is found. Null where none was ever stored.';
comment on column node.visits is 'log2 of how often it was asked, each time weighing half after a day (decay_clock). Weights of all rows fade alike, so only rows that are asked are written.';
comment on column node.starts is 'The same of the times that it began a session.';
comment on column node.seen is 'How often it was asked in all.';
comment on column node.last_at is 'When it was last asked.';

create table transition (
    from_node bigint not null references node on delete cascade,
    to_node bigint not null references node on delete cascade,
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache on delete cascade,
    weight double precision not null,
    seen bigint not null,
    last_at timestamptz not null,
    primary key (from_node, to_node)
) with (fillfactor = 70);

create index transition_to on transition (to_node);
create index transition_cache on transition (cache_id);

comment on table transition is 'Edges of the request graph: one request was followed by another in a session, within half an hour.';
comment on column transition.from_node is 'What was asked before.';
comment on column transition.to_node is 'What was asked next; never the same.';
comment on column transition.tenant_id is 'The tenant whose sessions they were.';
comment on column transition.cache_id is 'The cache that was asked.';
comment on column transition.weight is 'log2 of how often, each time weighing half after a day (decay_clock).';
comment on column transition.seen is 'How often in all.';
comment on column transition.last_at is 'When last.';

create table centrality (
    node_id bigint primary key references node on delete cascade,
    tenant_id bigint not null references tenant,
    cache_id bigint not null references cache on delete cascade,
    popularity real not null,
    pagerank real not null,
    betweenness real not null,
    markov real not null
) with (fillfactor = 70);

create index centrality_cache on centrality (cache_id);

comment on table centrality is 'How central each node is, by several measures. Each is a share: over a cache it adds up to 1, or is 0 throughout.';
comment on column centrality.node_id is 'The node.';
comment on column centrality.tenant_id is 'The tenant whose request it is.';
comment on column centrality.cache_id is 'The cache of the node.';
comment on column centrality.popularity is 'Share of the decayed visits.';
comment on column centrality.pagerank is 'Share of the visits of a walk over the transitions that restarts where sessions start.';
comment on column centrality.betweenness is 'Share of the likeliest paths that lead through it, estimated from sampled sources.';
comment on column centrality.markov is 'Share of the requests expected soon: those that follow in the sessions under way, and all others as ever.';

create table request_graph (
    cache_id bigint primary key references cache on delete cascade,
    tenant_id bigint not null references tenant,
    began_at timestamptz not null default now(),
    grown_at timestamptz not null,
    scored_at timestamptz
);

comment on table request_graph is 'The request graph of each cache: since when it is kept, and whether its centralities are up to date.';
comment on column request_graph.cache_id is 'The cache.';
comment on column request_graph.tenant_id is 'The tenant that owns it.';
comment on column request_graph.began_at is 'The first request in it.';
comment on column request_graph.grown_at is 'When requests were last added.';
comment on column request_graph.scored_at is 'Up to when the centralities count what was added; null: never computed.';

do $$
declare
    v_table text;
begin
    foreach v_table in array array['node', 'transition', 'centrality', 'request_graph'] loop
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

grant select on node, transition, centrality, request_graph to semcache_app;
grant select, insert, update, delete on node, transition, centrality, request_graph, log_reader to semcache_worker;
