-- The lead whose stream is shown for those who follow a flight; none: the replica that leads is asked to show it.
with shown as (
    select c.holder
    from semcache.lease l
    join semcache.flight_chunk c on c.holder = l.holder
    where l.name = %(name)s
      and l.expires_at > clock_timestamp()
      and c.tenant_id = %(tenant_id)s
      and c.starts_at = 0
      and c.form = %(form)s
)
select
    (select holder from shown) as stream,
    case when not exists (select from shown) then pg_notify('semcache_follow', %(name)s || ' ' || %(form)s) end as told
