-- Take or renew a replica's lease and learn the newest invalidation.
-- Caller: the coherence loop of a service process, several times per lease, and once more after it has followed invalidations.
-- Locks: the invalidation lock, shared: a lease is renewed either before an invalidation is recorded, and then the
-- invalidation waits for this replica, or after it, and then the answer includes it.
-- Bound: one row. Idempotent.

create or replace function semcache.renew_lease(p_name text, p_holder uuid, p_seconds double precision, p_confirmed bigint)
returns bigint
language plpgsql
set search_path from current
as $$
declare
    v_head bigint;
    v_confirmed bigint;
begin
    perform pg_advisory_xact_lock_shared(hashtextextended('semcache.invalidation', 0));

    select coalesce(max(i.invalidation_id), 0)
    into v_head
    from invalidation i;

    select l.confirmed
    into v_confirmed
    from lease l
    where l.name = p_name;

    insert into lease (name, holder, expires_at, confirmed)
    values (p_name, p_holder, clock_timestamp() + make_interval(secs => p_seconds), coalesce(p_confirmed, v_head))
    on conflict (name) do update
    set holder = excluded.holder,
        expires_at = excluded.expires_at,
        confirmed = excluded.confirmed;

    if v_confirmed is null then
        -- A new replica: the others look at once, and ask the model no more as if they were alone.
        perform pg_notify('semcache_invalidation', '');
    end if;

    if coalesce(p_confirmed, v_head) > coalesce(v_confirmed, v_head) then
        perform pg_notify('semcache_confirmed', coalesce(p_confirmed, v_head)::text);
    end if;
    return v_head;
end
$$;

comment on function semcache.renew_lease(text, uuid, double precision, bigint) is
    'Takes or renews a lease, notes the last invalidation followed (null: a new replica, whose memory is empty) and returns the newest one.';
revoke all on function semcache.renew_lease(text, uuid, double precision, bigint) from public;
grant execute on function semcache.renew_lease(text, uuid, double precision, bigint) to semcache_app, semcache_worker;
