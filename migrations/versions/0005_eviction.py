"""Eviction: what each entry takes and is worth, how full each cache is, and what was evicted lately. 0012 fills it in.

Revision: 0005, after 0004
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    sql = Path(__file__).with_suffix(".sql").read_text()
    op.execute(sql.replace(":", r"\:"))


def downgrade() -> None:
    """Remove what eviction knows. Entries and their hits stay; functions and views come with the earlier release."""
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '60s'")
    op.execute(
        """
        do $$
        declare
            v_command text;
        begin
            for v_command in
                select format('drop view %s cascade', c.oid\\:\\:regclass)
                from pg_catalog.pg_class c
                where c.relnamespace = 'semcache'\\:\\:regnamespace
                  and c.relkind = 'v'
                union all
                select format('drop function %s', p.oid\\:\\:regprocedure)
                from pg_catalog.pg_proc p
                where p.pronamespace = 'semcache'\\:\\:regnamespace
                  and p.proname in (
                      'admit_entry', 'evict_entries', 'evict_fifo', 'evict_lowest',
                      'fold_changes', 'record_invalidations'
                  )
            loop
                execute v_command;
            end loop;
        end
        $$
        """
    )
    op.execute("delete from sql_file")
    op.execute("drop table cache_size, cache_change, evicted")
    op.execute(
        """
        alter table entry_usage
            drop column cache_id,
            drop column bytes,
            drop column weight,
            drop column score,
            drop column uses,
            drop column returned,
            drop column rank
        """
    )
    op.execute("alter table tenant drop column max_entries, drop column max_bytes")
