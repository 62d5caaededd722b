-- Take the lead in asking the model for an answer, unless another replica has it, or has stored the answer since.
-- Leads with one round trip and without a wait; who does not lead learns for how many seconds the leader's lease lasts.
-- Not flushed at commit: a lead that a crash of Postgres forgets costs one more call, a flush each miss milliseconds.
with stored as (
    select exists (
        select
        from semcache.entry e
        where e.tenant_id = %(tenant_id)s
          and e.cache_id = %(cache_id)s
          and e.exact_key = %(exact_key)s
          and e.created_at > now() - make_interval(secs => %(since)s)
          and (e.expires_at is null or e.expires_at > now())
    ) as landed,
    set_config('synchronous_commit', 'off', true)
),
taken as (
    insert into semcache.lease (name, holder, expires_at)
    select %(name)s, %(holder)s, clock_timestamp() + make_interval(secs => %(seconds)s)
    from stored
    where not stored.landed
    on conflict (name) do update
    set holder = excluded.holder,
        expires_at = excluded.expires_at
    where lease.expires_at < clock_timestamp()
    returning name
)
select
    stored.landed,
    exists (select from taken) as leads,
    (
        select extract(epoch from l.expires_at - clock_timestamp())::float8
        from semcache.lease l
        where l.name = %(name)s
    ) as seconds
from stored
