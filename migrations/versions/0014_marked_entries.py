"""Pinned and quarantined entries are listed by an index of their own.

Revision: 0014, after 0013
"""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("set lock_timeout = '4s'")
        op.execute("set statement_timeout = '30min'")
        op.execute("drop index concurrently if exists entry_marked")
        op.execute(
            "create index concurrently entry_marked on entry (cache_id, epoch, created_at, entry_id) "
            "where pinned or quarantined_at is not null"
        )


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '60s'")
    op.execute("drop index entry_marked")
