-- Take or renew a worker's lease on a task; a row only for who has it now.
insert into semcache.lease (name, holder, expires_at)
values (%(name)s, %(holder)s, clock_timestamp() + make_interval(secs => %(seconds)s))
on conflict (name) do update
set holder = excluded.holder,
    expires_at = excluded.expires_at
where lease.holder = excluded.holder
   or lease.expires_at < clock_timestamp()
returning name
