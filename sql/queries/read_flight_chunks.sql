-- What is shown of a stream from a place on. One row at least, which says whether its leader lives: it shows the end
-- before it gives up its lease.
select led.alive, c.starts_at, c.head, c.piece, c.ends
from (
    select exists (
        select
        from semcache.lease l
        where l.name = %(name)s
          and l.holder = %(holder)s
          and l.expires_at > clock_timestamp()
    ) as alive
) led
left join semcache.flight_chunk c
    on c.tenant_id = %(tenant_id)s
    and c.holder = %(holder)s
    and c.starts_at >= %(place)s
order by c.starts_at
