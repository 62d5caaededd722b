-- The lead whose stream is shown for those who follow a flight; none: the replica that leads is asked to show it. One
-- that has ended is for those who followed it while it came, and for others once it is stored. `told` is nothing to read: it
-- asks, by notification.
with shown as (
    select c.holder
    from semcache.lease l
    join semcache.flight_chunk c on c.holder = l.holder
    where l.name = %(name)s
      and l.expires_at > clock_timestamp()
      and c.tenant_id = %(tenant_id)s
      and c.starts_at = 0
      and c.form = %(form)s
      and not exists (
          select
          from semcache.flight_chunk e
          where e.tenant_id = c.tenant_id
            and e.holder = c.holder
            and e.ends is not null
      )
)
select
    (select holder from shown) as stream,
    case when not exists (select from shown) then pg_notify('semcache_follow', %(name)s || ' ' || %(form)s) end as told
