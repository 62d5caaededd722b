"""Quotas by `pgsemcache quotas`, which acts as the worker.

Revision: 0018, after 0017
"""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("grant update (max_entries, max_bytes) on tenant to semcache_worker")


def downgrade() -> None:
    op.execute("set local lock_timeout = '4s'")
    op.execute("set local statement_timeout = '30s'")
    op.execute("drop function if exists set_quota(text, bigint, bigint)")
    op.execute("revoke update (max_entries, max_bytes) on tenant from semcache_worker")
