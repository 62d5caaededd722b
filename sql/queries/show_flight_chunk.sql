-- Show the next piece of a stream to those who follow it, and forget what lies too far behind.
with gone as (
    delete from semcache.flight_chunk
    where tenant_id = %(tenant_id)s
      and holder = %(holder)s
      and starts_at < %(oldest)s
),
shown as (
    insert into semcache.flight_chunk (tenant_id, holder, starts_at, form, head, piece, ends)
    values (%(tenant_id)s, %(holder)s, %(starts_at)s, %(form)s, %(head)s, %(piece)s, %(ends)s)
)
select pg_notify('semcache_chunk', %(name)s)
