-- Take a task, if it is due and no other worker's lease on it is live. A task whose worker was killed is due at once, and
-- counts one failure more.
-- Caller: a worker, again and again. Locks: the task's row. Bound: one row. Not flushed at commit: a crash of Postgres
-- may cost one run more.

create or replace function semcache.claim_task(p_name text, p_holder uuid, p_seconds double precision)
returns double precision
language plpgsql
set search_path from current
as $$
declare
    v_task task;
    v_now timestamptz := clock_timestamp();
    v_killed boolean;
    v_from timestamptz;
begin
    perform set_config('synchronous_commit', 'off', true);

    insert into task (name)
    values (p_name)
    on conflict (name) do nothing;

    select t.*
    into strict v_task
    from task t
    where t.name = p_name
    for update;

    v_killed := coalesce(v_task.outcome = 'running', false);
    v_from := case when v_killed then v_task.leased_until else v_task.next_due end;

    if v_from > v_now then
        return extract(epoch from v_from - v_now);
    end if;

    update task
    set holder = p_holder,
        leased_until = v_now + make_interval(secs => p_seconds),
        started_at = v_now,
        ended_at = null,
        outcome = 'running',
        failures = failures + v_killed::int
    where name = p_name;

    return null;
end
$$;

comment on function semcache.claim_task(text, uuid, double precision) is
    'Takes a due task for so many seconds and returns null, or returns in how many seconds it is worth asking again.';
revoke all on function semcache.claim_task(text, uuid, double precision) from public;
grant execute on function semcache.claim_task(text, uuid, double precision) to semcache_worker;
