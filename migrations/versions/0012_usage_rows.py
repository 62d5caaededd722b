"""Every entry gets its row of entry_usage, so that eviction sees it.

Revision: 0012, after 0011. The table is written at each hit, so no step holds its lock while it reads all entries, and
each may be done again.
"""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

FILL = """
insert into entry_usage (entry_id, tenant_id, cache_id, bytes)
select e.entry_id, e.tenant_id, e.cache_id, o.bytes + octet_length(e.prompt) + 2048
from entry e
join output o using (output_id)
left join entry_usage u using (entry_id)
where u.cache_id is null
order by e.entry_id
on conflict (entry_id) do update
set cache_id = excluded.cache_id,
    bytes = excluded.bytes
"""
COUNT = """
insert into cache_size (cache_id, tenant_id, entries, bytes, stored, clocked)
select u.cache_id, u.tenant_id, count(*), sum(u.bytes), count(*), count(*)
from entry_usage u
group by u.cache_id, u.tenant_id
on conflict (cache_id) do nothing
"""


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = '4s'")
        op.execute("set statement_timeout = '30min'")
        as_worker(FILL)
        # From here on the release before writes no row without a cache; it keeps what it could not write.
        op.execute("alter table entry_usage drop constraint if exists entry_usage_cached")
        op.execute("alter table entry_usage add constraint entry_usage_cached check (cache_id is not null) not valid")
        as_worker(FILL)
        op.execute("alter table entry_usage validate constraint entry_usage_cached")
        op.execute("alter table entry_usage alter column cache_id set not null")
        op.execute("alter table entry_usage drop constraint entry_usage_cached")
        op.execute("drop index concurrently if exists entry_usage_rank")
        op.execute("create index concurrently entry_usage_rank on entry_usage (cache_id, rank, entry_id)")
        as_worker(COUNT)


def as_worker(statement: str) -> None:
    """Of all tenants, which only the worker sees."""
    op.execute("set role semcache_worker")
    op.execute(statement)
    op.execute("set role semcache_owner")


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '60s'")
    op.execute("drop index entry_usage_rank")
    op.execute("alter table entry_usage alter column cache_id drop not null")
