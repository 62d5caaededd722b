-- Streams under way that replicas share. Unlogged and without foreign keys: a piece that is lost costs one more call to
-- the model, and one that is written takes no flush.

create unlogged table flight_chunk (
    tenant_id bigint not null,
    holder uuid not null,
    starts_at bigint not null,
    form text,
    head jsonb,
    piece bytea not null,
    ends text check (ends in ('whole', 'broken')),
    at timestamptz not null default now(),
    primary key (tenant_id, holder, starts_at)
);

comment on table flight_chunk is 'What a call to the model has brought, for streams of other replicas that follow it. Deleted seconds after the end; empty after a crash of Postgres.';
comment on column flight_chunk.tenant_id is 'The tenant that asks.';
comment on column flight_chunk.holder is 'The lead of the call, as lease.holder.';
comment on column flight_chunk.starts_at is 'How many bytes come before it.';
comment on column flight_chunk.form is 'What requests must have in common beside the flight to read it. Of the first piece.';
comment on column flight_chunk.head is 'Status and headers of the answer. Of the first piece.';
comment on column flight_chunk.piece is 'Bytes of the stream, as many as came in a twentieth of a second.';
comment on column flight_chunk.ends is 'Of the last piece: whether the stream is whole or broke off.';
comment on column flight_chunk.at is 'When it came.';

alter table flight_chunk enable row level security;
alter table flight_chunk force row level security;
create policy own_tenant on flight_chunk
    using (tenant_id = (select current_tenant()))
    with check (tenant_id = (select current_tenant()));
create policy worker on flight_chunk to semcache_worker using (true) with check (true);
comment on policy own_tenant on flight_chunk is 'Only rows of the tenant in semcache.tenant_id.';
comment on policy worker on flight_chunk is 'The worker cares for all tenants.';

grant select, insert, delete on flight_chunk to semcache_app;
grant select, delete on flight_chunk to semcache_worker;
