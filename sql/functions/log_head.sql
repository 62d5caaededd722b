-- The last row of request_log below which nothing is still to come: numbers are drawn before they are committed, and
-- every writer holds this lock, shared, to its commit.
-- Caller: readers of the log, in a statement of its own, since writers wait while its transaction lasts.
-- Locks: the log's advisory lock. Bound: one row.

create or replace function semcache.log_head()
returns bigint
language plpgsql
set search_path from current
as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('request_log', 0));
    return coalesce((select max(request_log_id) from request_log), 0);
end
$$;

comment on function semcache.log_head() is
    'The request_log_id up to which the log is whole: every row below it that will ever be is there.';
revoke all on function semcache.log_head() from public;
grant execute on function semcache.log_head() to semcache_worker;
