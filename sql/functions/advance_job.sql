-- Note a batch of a job, with the place where the next one begins: the lines that were read go, those that an export
-- has written are kept. False, and nothing is noted, where the batch is not the holder's any more: its lease ran
-- out and another took it, or the job was cancelled.
-- Caller: who claimed the job. Locks: the job's row. Bound: the batch.

create or replace function semcache.advance_job(
    p_tenant_id bigint,
    p_job_id uuid,
    p_holder uuid,
    p_position jsonb,
    p_done integer,
    p_errors jsonb,
    p_lines json,
    p_ended boolean
)
returns boolean
language plpgsql
set search_path from current
as $$
declare
    v_done bigint;
begin
    update job j
    set position = p_position,
        done = j.done + p_done,
        failed = j.failed + jsonb_array_length(p_errors),
        errors = (
            select coalesce(jsonb_agg(x.error), '[]')
            from (
                select e.error
                from jsonb_array_elements(j.errors || p_errors) with ordinality e (error, number)
                order by e.number
                limit 20
            ) x
        ),
        state = case when p_ended then 'done' else 'running' end,
        ended_at = case when p_ended then clock_timestamp() end,
        leased_until = null
    where j.tenant_id = p_tenant_id
      and j.job_id = p_job_id
      and j.holder = p_holder
      and j.state = 'running'
    returning j.done into v_done;

    if not found then
        return false;
    end if;

    delete from job_line l
    using job j
    where j.job_id = p_job_id
      and j.kind <> 'export'
      and l.job_id = j.job_id
      and l.number <= (p_position ->> 'number')::bigint;

    insert into job_line (job_id, tenant_id, number, line)
    select p_job_id, p_tenant_id, v_done - p_done + l.number, l.line
    from json_array_elements(p_lines) with ordinality l (line, number);

    return true;
end
$$;

comment on function semcache.advance_job(bigint, uuid, uuid, jsonb, integer, jsonb, json, boolean) is
    'Notes a batch of a job and where the next begins; false where the batch is not the holder''s any more.';
revoke all on function semcache.advance_job(bigint, uuid, uuid, jsonb, integer, jsonb, json, boolean) from public;
grant execute on function semcache.advance_job(bigint, uuid, uuid, jsonb, integer, jsonb, json, boolean)
    to semcache_app, semcache_worker;
