"""Approximate indexes stand for a scope and an embedder: two generations of vectors have each their own.

Revision: 0011, after 0010
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    sql = Path(__file__).with_suffix(".sql").read_text()
    op.execute(sql.replace(":", r"\:"))


def downgrade() -> None:
    """Keep one index for each scope in use, the largest; the earlier release drops or replaces the others."""
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("drop view if exists index_health, table_health")
    op.execute("delete from sql_file")
    op.execute("comment on column scope.ann_index is 'Kind of the approximate index over this scope''s vectors.'")
    op.execute("comment on column scope.ann_rows is 'How many rows the approximate index was built over.'")
    op.execute("set local role semcache_worker")
    op.execute(
        """
        update scope s
        set ann_index = a.kind,
            ann_rows = a.rows
        from scope c
        left join (select distinct on (scope_id) * from vector_index order by scope_id, rows desc) a using (scope_id)
        where c.scope_id = s.scope_id
          and (a.kind is not null or s.ann_index is not null)
        """
    )
    op.execute("set local role semcache_owner")
    op.execute("drop table vector_index")
