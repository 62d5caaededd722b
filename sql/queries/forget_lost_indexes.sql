-- Approximate indexes that are noted and not there whole: lookups scan exactly, and their scopes want one again.
delete from semcache.vector_index a
where not exists (
    select
    from pg_catalog.pg_index i
    join pg_catalog.pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'semcache'::regnamespace
      and starts_with(c.relname::text, concat('ann_', a.embedder_id, '_', a.scope_id, '_'))
      and i.indisvalid
)
