-- Cancel a job, or note that it failed. One that has ended stays as it is; what an import had yet to read goes.
-- Caller: DELETE of the data API; who works on it. Locks: the job's row. Bound: one job. Idempotent. Errors: SC406 when there is none.

create or replace function semcache.end_job(p_tenant_id bigint, p_job_id uuid, p_state text, p_errors jsonb)
returns void
language plpgsql
set search_path from current
as $$
begin
    update job j
    set state = case when j.ended_at is null then p_state else j.state end,
        errors = case when j.ended_at is null then j.errors || p_errors else j.errors end,
        ended_at = coalesce(j.ended_at, clock_timestamp())
    where j.tenant_id = p_tenant_id
      and j.job_id = p_job_id;

    if not found then
        raise exception 'there is no such job'
            using errcode = 'SC406';
    end if;

    delete from job_line l
    using job j
    where j.job_id = p_job_id
      and l.job_id = j.job_id
      and (j.kind = 'import' or j.state <> 'done');
end
$$;

comment on function semcache.end_job(bigint, uuid, text, jsonb) is 'Cancels a job or notes that it failed, unless it has ended.';
revoke all on function semcache.end_job(bigint, uuid, text, jsonb) from public;
grant execute on function semcache.end_job(bigint, uuid, text, jsonb) to semcache_app, semcache_worker;
