"""Lifetimes that adapt: how long answers of a scope stay right.

Revision: 0013, after 0012
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    sql = Path(__file__).with_suffix(".sql").read_text()
    op.execute(sql.replace(":", r"\:"))


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("drop function if exists adapt_lifetimes(interval)")
    op.execute("delete from sql_file")
    op.execute("alter table scope drop column ttl_ms")
    op.execute(
        """
        alter table evicted
            add constraint evicted_cache_id_fkey foreign key (cache_id) references cache not valid,
            add constraint evicted_tenant_id_fkey foreign key (tenant_id) references tenant not valid
        """
    )
