-- Lifetimes that adapt: how long answers of a scope stay right.

alter table scope add column ttl_ms bigint check (ttl_ms > 0);

comment on column scope.ttl_ms is 'Lifetime that new entries get, in milliseconds, where the cache''s policy lets it adapt; null: the policy''s.';

alter table evicted
    drop constraint evicted_cache_id_fkey,
    drop constraint evicted_tenant_id_fkey;
