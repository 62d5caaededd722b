-- Give up the lead, and tell who waits: the answer is stored, or somebody else must ask. Not flushed at commit.
with gone as (
    delete from semcache.lease
    where name = %(name)s
      and holder = %(holder)s
    returning name
)
select
    pg_notify('semcache_flight', gone.name),
    set_config('synchronous_commit', 'off', true)
from gone
