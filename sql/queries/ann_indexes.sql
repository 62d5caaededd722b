-- Approximate indexes as they stand, also those that a broken build left invalid.
select
    c.relname as name,
    i.indisvalid as valid
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indexrelid
where c.relnamespace = 'semcache'::regnamespace
  and c.relname like 'ann\_%%'
order by c.relname
