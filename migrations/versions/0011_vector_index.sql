-- Approximate indexes stand for a scope and an embedder: two generations of vectors have each their own.

create table vector_index (
    scope_id bigint not null references scope,
    embedder_id integer not null references embedder,
    tenant_id bigint not null references tenant,
    kind text not null check (kind in ('ivfflat', 'hnsw')),
    rows bigint not null,
    built_at timestamptz not null default now(),
    recall real check (recall between 0 and 1),
    checked_at timestamptz,
    primary key (scope_id, embedder_id)
);

comment on table vector_index is 'Approximate indexes that lookups may use: one for each large scope and embedder. Smaller ones are scanned exactly.';
comment on column vector_index.scope_id is 'The scope whose vectors it holds.';
comment on column vector_index.embedder_id is 'The embedder that made them.';
comment on column vector_index.tenant_id is 'The tenant that owns the scope.';
comment on column vector_index.kind is 'Kind of the index.';
comment on column vector_index.rows is 'How many vectors it was built over.';
comment on column vector_index.built_at is 'When it was built.';
comment on column vector_index.recall is 'How often it found the nearest neighbour that an exact scan found, when it was last tried; null: not tried since it was built.';
comment on column vector_index.checked_at is 'When it was last tried.';

alter table vector_index enable row level security;
alter table vector_index force row level security;
create policy own_tenant on vector_index using (tenant_id = (select current_tenant())) with check (tenant_id = (select current_tenant()));
create policy worker on vector_index to semcache_worker using (true) with check (true);
comment on policy own_tenant on vector_index is 'Only rows of the tenant in semcache.tenant_id.';
comment on policy worker on vector_index is 'The worker cares for all tenants.';

grant select on vector_index to semcache_app;
grant select, insert, update, delete on vector_index to semcache_worker;

set local role semcache_worker;

insert into vector_index (scope_id, embedder_id, tenant_id, kind, rows)
select distinct on (s.scope_id, split_part(i.relname, '_', 2))
    s.scope_id, split_part(i.relname, '_', 2)::integer, s.tenant_id, s.ann_index, coalesce(s.ann_rows, 0)
from pg_catalog.pg_class i
join pg_catalog.pg_index x on x.indexrelid = i.oid
join scope s on s.scope_id = split_part(i.relname, '_', 3)::bigint
where i.relnamespace = 'semcache'::regnamespace
  and i.relname ~ '^ann_\d+_\d+_'
  and x.indisvalid
  and s.ann_index is not null;

set local role semcache_owner;

comment on column scope.ann_index is 'Kind of the approximate index, for the release of the first schema. Goes with the next release.';
comment on column scope.ann_rows is 'Its rows, for the release of the first schema. Goes with the next release.';
